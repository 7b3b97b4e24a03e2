#include "leat/store/http/resolver.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/base/units.h"
#include "leat/runtime/log.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr std::size_t kMostAddresses = 64;

/// How long destruction waits for a lookup that is under way.
constexpr std::chrono::milliseconds kPatience{200};

Error lookup_error(const std::string& name, int code) {
  const bool is_final = code == EAI_NONAME
#ifdef EAI_NODATA
                        || code == EAI_NODATA
#endif
      ;
  if (is_final) {
    return unavailable(
        "the host name '{}' does not exist ({}); check its spelling, the "
        "endpoint and this machine's DNS",
        name, gai_strerror(code));
  }
  return unavailable(
      "the host name '{}' could not be looked up for now ({}); check this "
      "machine's DNS",
      name, code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code));
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes =
      address->sa_family == AF_INET
          ? static_cast<const void*>(
                &reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  inet_ntop(address->sa_family, bytes, text.data(), text.size());
  return text.data();
}

}  // namespace

Result<std::vector<HostAddress>> ask_system_for_host(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  if (code != 0) return lookup_error(name, code);
  std::vector<HostAddress> addresses;
  for (const addrinfo* at = list;
       at != nullptr && addresses.size() < kMostAddresses; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    HostAddress address;
    std::memcpy(&address.address, at->ai_addr, at->ai_addrlen);
    address.size_bytes = at->ai_addrlen;
    address.text = text_of(at->ai_addr);
    addresses.push_back(std::move(address));
  }
  freeaddrinfo(list);
  if (addresses.empty()) return lookup_error(name, EAI_NONAME);
  return addresses;
}

/// All that the thread touches, so that it may outlive the Resolver.
struct Resolver::Shared {
  struct Entry {
    std::optional<Result<HostAnswerRef>> kept;
    TimePoint keep_until;
    bool is_queued = false;
    std::vector<Done> waiting;
    HostAnswerRef last_good;
    TimePoint last_good_at;
    bool is_failing = false;
  };

  explicit Shared(Ask ask_host) : ask(std::move(ask_host)) {}

  void run(const std::stop_token& stop);
  /// Takes an answer; returns what the log should say, if anything.
  std::string keep(const std::string& name, Entry& entry,
                   Result<std::vector<HostAddress>> asked, TimePoint now)
      LEAT_REQUIRES(mutex);
  // Lets go and takes back: the analysis cannot tell that `lock` is mutex's.
  void answer(const std::string& name, MutexLock& lock)
      LEAT_REQUIRES(mutex) LEAT_NO_THREAD_SAFETY_ANALYSIS;

  const Ask ask;
  Mutex mutex;
  CondVar changed;
  bool is_running LEAT_GUARDED_BY(mutex) = true;
  std::deque<std::string> queue LEAT_GUARDED_BY(mutex);
  std::map<std::string, Entry, std::less<>> entries LEAT_GUARDED_BY(mutex);
};

void Resolver::Shared::run(const std::stop_token& stop) {
  MutexLock lock(mutex);
  while (!stop.stop_requested()) {
    if (queue.empty()) {
      changed.wait(lock, stop, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
        return !queue.empty();
      });
      continue;
    }
    const std::string name = std::move(queue.front());
    queue.pop_front();
    answer(name, lock);
  }
  is_running = false;
  changed.notify_all();
}

std::string Resolver::Shared::keep(const std::string& name, Entry& entry,
                                   Result<std::vector<HostAddress>> asked,
                                   TimePoint now) {
  entry.keep_until = now + (asked ? kKeep : kKeepFailure);
  const bool was_failing = std::exchange(entry.is_failing, !asked);
  if (asked) {
    entry.last_good = std::make_shared<HostAnswer>(HostAnswer{
        .addresses = *std::move(asked), .fresh_until = entry.keep_until});
    entry.last_good_at = now;
    entry.kept = entry.last_good;
    if (!was_failing) return {};
    return fmt::format("the host name '{}' can be looked up again", name);
  }
  if (entry.last_good == nullptr) {
    entry.kept = Result<HostAnswerRef>(std::move(asked).error());
    entry.is_failing = false;  // Those who asked hear of it.
    return {};
  }
  entry.kept = HostAnswerRef(std::make_shared<HostAnswer>(
      HostAnswer{.addresses = entry.last_good->addresses,
                 .fresh_until = now + kKeepStale}));
  if (was_failing) return {};
  return fmt::format(
      "{}; until that works again, its addresses of {} ago are used",
      asked.error().message(), format_duration(now - entry.last_good_at));
}

void Resolver::Shared::answer(const std::string& name, MutexLock& lock) {
  lock.unlock();
  auto asked = ask(name);
  lock.lock();

  const TimePoint now = SteadyClock().now();
  Entry& entry = entries[name];
  entry.is_queued = false;
  const std::string to_log = keep(name, entry, std::move(asked), now);
  const bool is_bad_news = entry.is_failing;
  const Result<HostAnswerRef> result = *entry.kept;
  const std::vector<Done> waiting = std::exchange(entry.waiting, {});
  lock.unlock();
  if (!to_log.empty()) (is_bad_news ? log_warning : log_info)(to_log);
  for (const Done& done : waiting) done(result);
  lock.lock();
}

Resolver::Resolver(Ask ask)
    : shared_(std::make_shared<Shared>(std::move(ask))),
      thread_([shared = shared_](const std::stop_token& stop) {
        name_this_thread("leat-resolve");
        shared->run(stop);
      }) {}

Resolver::~Resolver() {
  thread_.request_stop();
  bool has_ended = false;
  {
    MutexLock lock(shared_->mutex);
    shared_->entries.clear();
    shared_->queue.clear();
    has_ended = shared_->changed.wait_for(
        lock, kPatience, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
          return !shared_->is_running;
        });
  }
  // The one detached thread of ours: the system is asked, and nothing can
  // interrupt that. It ends with the lookup.
  if (!has_ended) thread_.detach();
}

void Resolver::resolve(const std::string& name, Done done) {
  enqueue(name, std::move(done), Fresh::kKept);
}

void Resolver::refresh(const std::string& name, Done done) {
  enqueue(name, std::move(done), Fresh::kAskAgain);
}

void Resolver::enqueue(const std::string& name, Done done, Fresh fresh) {
  MutexLock lock(shared_->mutex);
  Shared::Entry& entry = shared_->entries[name];
  if (fresh == Fresh::kKept && entry.kept &&
      SteadyClock().now() < entry.keep_until) {
    const Result<HostAnswerRef> kept = *entry.kept;
    lock.unlock();
    return done(kept);
  }
  entry.waiting.push_back(std::move(done));
  if (std::exchange(entry.is_queued, true)) return;
  shared_->queue.push_back(name);
  shared_->changed.notify_all();
}

}  // namespace leat
