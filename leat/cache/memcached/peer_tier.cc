#include "leat/cache/memcached/peer_tier.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/peer_memory.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// A server that moves bytes, but this slowly, counts as dead.
constexpr int kMostPatiences = 20;

/// How soon a find asks again for a value that another rank is bringing.
constexpr std::chrono::milliseconds kAskAgain{4};

Error no_servers() {
  return invalid("peers names no server; give at least one host:port");
}

}  // namespace

Result<std::unique_ptr<PeerTier>> PeerTier::open(const PeerOptions& options) {
  if (options.servers.empty()) return no_servers();
  LEAT_TRY_VOID(PieceSeal::check_openssl());
  std::set<std::string> names;
  std::vector<std::string> given;
  given.reserve(options.servers.size());
  for (const std::string& text : options.servers) {
    LEAT_TRY(const ServerName server, parse_server(text));
    names.insert(server.text());
    given.push_back(server.text());
  }
  std::vector<std::size_t> as_given;
  as_given.reserve(given.size());
  for (const std::string& name : given) {
    as_given.push_back(static_cast<std::size_t>(
        std::distance(names.begin(), names.find(name))));
  }
  std::vector<ServerName> servers;
  servers.reserve(names.size());
  for (const std::string& name : names) {
    LEAT_TRY(ServerName server, parse_server(name));
    servers.push_back(std::move(server));
  }
  std::unique_ptr<PeerTier> tier(new PeerTier(
      options, servers, {names.begin(), names.end()}, std::move(as_given)));
  for (const auto& thread : tier->threads_) {
    if (!thread->is_usable()) {
      return exhausted(
          "no file descriptors are left to reach peers with; raise `ulimit "
          "-n`");
    }
  }
  return tier;
}

PeerTier::PeerTier(const PeerOptions& options,
                   const std::vector<ServerName>& servers,
                   const std::vector<std::string>& names,
                   std::vector<std::size_t> as_given)
    : options_(options), rendezvous_(names), as_given_(std::move(as_given)) {
  servers_.reserve(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    servers_.push_back(std::make_unique<Server>());
  }
  start_threads(servers);
}

PeerTier::~PeerTier() = default;

void PeerTier::start_threads(const std::vector<ServerName>& servers) {
  const std::size_t count =
      std::clamp<std::size_t>(options_.threads, 1, servers.size());
  threads_.reserve(count);
  for (std::size_t t = 0; t < count; ++t) {
    std::vector<ServerName> some;
    std::vector<std::size_t> numbers;
    for (std::size_t i = t; i < servers.size(); i += count) {
      some.push_back(servers[i]);
      numbers.push_back(i);
    }
    PeerThread::Events events;
    events.is_up = [this, numbers](std::size_t index, std::uint64_t limit) {
      servers_[numbers[index]]->limit_bytes.store(limit);
      tell(numbers[index], true);
    };
    events.is_down = [this, numbers](std::size_t index) {
      tell(numbers[index], false);
    };
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      servers_[numbers[k]]->index = k;
    }
    threads_.push_back(std::make_unique<PeerThread>(some, options_.settings,
                                                    resolver_, events));
    for (const std::size_t number : numbers) {
      servers_[number]->thread = threads_.back().get();
    }
  }
}

void PeerTier::tell(std::size_t number, bool is_up) {
  Server& server = *servers_[number];
  if (server.is_up.exchange(is_up) && !is_up) counts_.outages.fetch_add(1);
  const MutexLock lock(mutex_);
  server.is_known.store(true);
  changed_.notify_all();
}

bool PeerTier::wait_for_servers(Nanoseconds timeout) {
  MutexLock lock(mutex_);
  const auto all = [this](auto flag) {
    return std::all_of(
        servers_.begin(), servers_.end(),
        [flag](const auto& server) { return ((*server).*flag).load(); });
  };
  changed_.wait_for(lock, timeout, [&] { return all(&Server::is_known); });
  return all(&Server::is_up);
}

bool PeerTier::has_room_for(const RecordKey& key, const Server& server) const {
  const std::uint64_t limit = server.limit_bytes.load();
  if (options_.dataset_bytes == 0 || limit == 0) return true;
  const double expected = static_cast<double>(options_.dataset_bytes) /
                          static_cast<double>(servers_.size());
  const double share = kUsablePeerShare * static_cast<double>(limit) / expected;
  if (share >= 1) return true;
  constexpr double kAll = 18446744073709551616.0;  // 2^64
  // Uses the half that did not choose the server.
  return static_cast<double>(mix64(key.high)) < share * kAll;
}

std::size_t PeerTier::server_of(const RecordKey& key,
                                std::optional<std::size_t> server) const {
  if (server && *server < as_given_.size()) return as_given_[*server];
  return rendezvous_.server_of(key);
}

void PeerTier::find(const RecordKey& key, std::span<std::byte> into,
                    std::function<void(bool is_hit)> done,
                    std::optional<std::size_t> placed) {
  const std::size_t number = server_of(key, placed);
  Server& server = *servers_[number];
  if (into.empty() || into.size() > kMostPeerValueBytes ||
      !has_room_for(key, server)) {
    counts_.not_kept.fetch_add(1);
    return done(false);
  }
  const TimePoint now = clock_.now();
  auto operation = std::make_shared<PeerOperation>();
  operation->key = key;
  operation->split = split_value(into.size());
  operation->into = into;
  operation->due = now + kMostPatiences * options_.settings.patience;
  operation->done = [this, number, wait_until = now + options_.most_wait,
                     done = std::move(done)](const PeerOperationRef& answered) {
    found(answered, number, wait_until, done);
  };
  server.thread->submit(server.index, operation);
}

void PeerTier::found(const PeerOperationRef& operation, std::size_t number,
                     TimePoint wait_until,
                     const std::function<void(bool is_hit)>& done) {
  const bool has_waited = operation->begins != TimePoint{};
  switch (operation->answer) {
    case PeerAnswer::kYes:
      counts_.hits.fetch_add(1);
      counts_.hit_bytes.fetch_add(operation->into.size());
      break;
    case PeerAnswer::kComing: {
      const TimePoint now = clock_.now();
      if (now < wait_until) {
        Server& server = *servers_[number];
        operation->begins = now + kAskAgain;
        operation->due =
            operation->begins + kMostPatiences * options_.settings.patience;
        return server.thread->submit(server.index, operation);
      }
      [[fallthrough]];
    }
    case PeerAnswer::kNo:
    case PeerAnswer::kNoMemory:
      counts_.misses.fetch_add(1);
      break;
    case PeerAnswer::kWrong:
      if (counts_.wrong.fetch_add(1) == 0) {
        log_warning(
            "a peer had a value that is torn, or that was not sealed with this "
            "job's secret: another job left it, or somebody else who reaches "
            "the servers made it. It is not used, and read from the store "
            "instead; so are all like it");
      }
      break;
    case PeerAnswer::kUnreachable:
      counts_.unreachable.fetch_add(1);
      break;
  }
  if (has_waited) counts_.waited.fetch_add(1);
  done(operation->answer == PeerAnswer::kYes);
}

void PeerTier::insert(const RecordKey& key, std::span<const std::byte> record,
                      std::optional<std::size_t> placed) {
  const std::size_t number = server_of(key, placed);
  Server& server = *servers_[number];
  if (record.empty() || record.size() > kMostPeerValueBytes ||
      !has_room_for(key, server)) {
    return;
  }
  const std::uint64_t unsent =
      unsent_bytes_.fetch_add(record.size()) + record.size();
  if (!server.is_up.load() || unsent > options_.most_unsent_bytes) {
    unsent_bytes_.fetch_sub(record.size());
    counts_.unsent.fetch_add(1);
    // Ranks that wait for it need not.
    return drop(key, record.size(), placed);
  }
  auto copy = std::make_shared<Buffer>(record.size());
  std::memcpy(copy->data(), record.data(), record.size());
  auto operation = std::make_shared<PeerOperation>();
  operation->kind = PeerOperation::Kind::kInsert;
  operation->key = key;
  operation->split = split_value(record.size());
  operation->value = std::move(copy);
  operation->due = clock_.now() + kMostPatiences * options_.settings.patience;
  operation->done = [this](const PeerOperationRef& answered) {
    inserted(*answered);
  };
  server.thread->submit(server.index, operation);
}

void PeerTier::inserted(const PeerOperation& operation) {
  unsent_bytes_.fetch_sub(operation.split.value_bytes);
  if (operation.answer == PeerAnswer::kYes) {
    counts_.inserts.fetch_add(1);
  } else if (operation.answer == PeerAnswer::kUnreachable) {
    counts_.unsent.fetch_add(1);
  } else {
    counts_.refused.fetch_add(1);
  }
}

void PeerTier::drop(const RecordKey& key, std::uint64_t record_bytes,
                    std::optional<std::size_t> placed) {
  if (record_bytes == 0 || record_bytes > kMostPeerValueBytes) return;
  const std::size_t number = server_of(key, placed);
  auto operation = std::make_shared<PeerOperation>();
  operation->kind = PeerOperation::Kind::kDrop;
  operation->key = key;
  operation->split = split_value(record_bytes);
  operation->due = clock_.now() + kMostPatiences * options_.settings.patience;
  operation->done = [](const PeerOperationRef&) {};
  servers_[number]->thread->submit(servers_[number]->index, operation);
}

std::uint64_t PeerTier::capacity_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& server : servers_) bytes += server->limit_bytes.load();
  return bytes;
}

PeerCounts PeerTier::counts() const {
  return {.hits = counts_.hits.load(),
          .hit_bytes = counts_.hit_bytes.load(),
          .misses = counts_.misses.load(),
          .waited = counts_.waited.load(),
          .wrong = counts_.wrong.load(),
          .unreachable = counts_.unreachable.load(),
          .not_kept = counts_.not_kept.load(),
          .inserts = counts_.inserts.load(),
          .refused = counts_.refused.load(),
          .unsent = counts_.unsent.load(),
          .outages = counts_.outages.load()};
}

}  // namespace leat
