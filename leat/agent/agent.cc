// One thread: it polls the listening socket and all connections, and once a
// second, or when somebody has come or gone, decides.

#include "leat/agent/agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "leat/agent/cpu_load.h"
#include "leat/agent/job_book.h"
#include "leat/agent/user_name.h"
#include "leat/agent/wire/unix_socket.h"
#include "leat/base/clock.h"
#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/runtime/energy_count.h"
#include "leat/runtime/limits.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr double kTickSeconds = 1;
constexpr int kPollMilliseconds = 200;
constexpr std::size_t kMostUnsent = 65536;  // The agent closes a connection
                                            // that leaves more than this
                                            // unread.
constexpr double kSmoothed = 0.7;           // Smooths the load of other
                                            // programs.
constexpr double kRegistersWithin = 10;     // After it has connected.
constexpr double kWatchedSeconds = 5;       // After somebody asked for a trace.

struct Connection {
  OwnedFd socket;
  Peer peer;
  LineReader reader;
  std::string unsent;
  double came_at = 0;
  bool is_registered = false;
  bool is_over = false;
};

double seconds_of(TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

double unix_now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class PollingAgent final : public Agent {
 public:
  PollingAgent(const AgentOptions& options, ListeningSocket listening)
      : options_(options),
        listening_(std::move(listening)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        book_(with_cores(options.node, effective_limits().cpus, {}),
              options.sharing, options.buckets) {
    tick();
    thread_ = start_thread([this](const std::stop_token& stop) { run(stop); });
  }

  ~PollingAgent() override {
    thread_.request_stop();
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
    remove_socket(listening_, options_.socket);
  }

  NodeView view() const override {
    const MutexLock lock(mutex_);
    NodeView view = view_;
    view.time_seconds = unix_now();
    return view;
  }

  std::optional<JobTrace> trace(const std::string& job) override {
    const MutexLock lock(mutex_);
    if (std::ranges::find(view_.jobs, job, &JobView::id) == view_.jobs.end()) {
      return std::nullopt;
    }
    Watched& watched = watched_[job];
    watched.until = seconds_of(SteadyClock().now()) + kWatchedSeconds;
    return watched.trace;
  }

 private:
  /// A job whose trace somebody looks at. At most as many as there are jobs.
  struct Watched {
    double until = 0;
    double asked = 0;
    JobTrace trace = {};
  };

  void run(const std::stop_token& stop) {
    name_this_thread("leat-agent");
    while (!stop.stop_requested()) {
      const bool has_changed = serve();
      const double at = now();
      if (has_changed || at - ticked_at_ >= kTickSeconds) tick();
      for (const auto& [id, told] : book_.take_shares()) {
        const auto found = connections_.find(id);
        if (found == connections_.end()) continue;
        say(found->second, line_of(told.share, told.pace));
      }
      ask_for_traces(at);
      hang_up_on_the_silent();
      drop_what_is_over();
    }
  }

  void ask_for_traces(double at) {
    std::vector<std::string> jobs;
    {
      const MutexLock lock(mutex_);
      std::erase_if(watched_,
                    [&](const auto& entry) { return entry.second.until < at; });
      for (auto& [job, watched] : watched_) {
        if (at < watched.asked + kTickSeconds) continue;
        watched.asked = at;
        jobs.push_back(job);
      }
    }
    for (const std::string& job : jobs) {
      const std::optional<MemberId> member = book_.first_member(job);
      const auto found =
          member ? connections_.find(*member) : connections_.end();
      if (found != connections_.end()) say(found->second, trace_request_line());
    }
  }

  /// A trace from a job that was not asked is ignored.
  void take_trace(MemberId member, JobTrace trace) {
    const MutexLock lock(mutex_);
    const auto found = watched_.find(book_.job_of(member));
    if (found != watched_.end()) found->second.trace = std::move(trace);
  }

  /// Waits a little for anybody; true if somebody has come or gone.
  bool serve() {
    std::vector<pollfd> sources = {{.fd = wake_.get(), .events = POLLIN}};
    const bool has_room =
        connections_.size() < most_connections_ && now() >= accepts_at_;
    sources.push_back(
        {.fd = has_room ? listening_.socket.get() : -1, .events = POLLIN});
    std::vector<MemberId> order;
    for (const auto& [id, connection] : connections_) {
      const bool has_unsent = !connection.unsent.empty();
      sources.push_back(
          {.fd = connection.socket.get(),
           .events = static_cast<short>(POLLIN | (has_unsent ? POLLOUT : 0))});
      order.push_back(id);
    }
    if (::poll(sources.data(), sources.size(), kPollMilliseconds) <= 0) {
      return false;
    }
    if (sources[1].revents != 0) accept_one();
    bool has_changed = false;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Connection& connection = connections_[order[i]];
      const short what = sources[i + 2].revents;
      if ((what & POLLOUT) != 0) send(connection);
      if ((what & (POLLIN | POLLHUP | POLLERR)) != 0) {
        has_changed = receive(order[i], connection) || has_changed;
      }
    }
    return drop_what_is_over() || has_changed;
  }

  void accept_one() {
    OwnedFd socket(::accept4(listening_.socket.get(), nullptr, nullptr,
                             SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: whoever waits makes the socket readable all along.
      if (errno != EAGAIN && errno != EINTR) accepts_at_ = now() + kTickSeconds;
      return;
    }
    Connection connection{.socket = std::move(socket)};
    connection.came_at = now();
    const Result<Peer> peer = peer_of(connection.socket.get());
    if (!peer) return;
    connection.peer = *peer;
    if (!may_come(connection)) {
      say(connection, error_line("this agent is of another user: ask for its "
                                 "--group"));
      return;
    }
    if (of_user(connection.peer.user) >= most_of_a_user_) {
      say(connection,
          error_line("this agent has as many connections of this user as it "
                     "takes: loaders that are not closed hold one each"));
      return;
    }
    connections_.emplace(++members_ever_, std::move(connection));
  }

  std::size_t of_user(uid_t user) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        connections_,
        [user](const auto& entry) { return entry.second.peer.user == user; }));
  }

  void hang_up_on_the_silent() {
    for (auto& [id, connection] : connections_) {
      if (connection.is_registered ||
          now() < connection.came_at + kRegistersWithin) {
        continue;
      }
      hang_up(connection, Error(ErrorCode::kDeadlineExceeded,
                                "register, and soon after connecting"));
    }
  }

  static double now() { return seconds_of(SteadyClock().now()); }

  bool may_come(const Connection& connection) const {
    const Peer& peer = connection.peer;
    if (peer.user == ::geteuid() || peer.user == 0) return true;
    return options_.group &&
           is_in_group(connection.socket.get(), peer, *options_.group);
  }

  /// True if it registered.
  bool receive(MemberId id, Connection& connection) {
    std::array<char, kMostLineBytes> bytes;
    const ssize_t got =
        ::recv(connection.socket.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      connection.is_over = true;
      return false;
    }
    const Result<void> added = connection.reader.add(
        std::string_view(bytes.data(), static_cast<std::size_t>(got)));
    if (!added) return hang_up(connection, added.error());
    bool has_registered = false;
    while (const auto line = connection.reader.next()) {
      const Result<LoaderMessage> said = parse_loader_line(*line);
      if (!said) return hang_up(connection, said.error());
      if (said->registration.has_value() == connection.is_registered) {
        return hang_up(connection, invalid("register first, and once"));
      }
      if (said->rates) {
        book_.report(id, *said->rates);
        continue;
      }
      if (said->trace) {
        take_trace(id, *said->trace);
        continue;
      }
      connection.is_registered = has_registered = true;
      book_.join(id, connection.peer.user, connection.peer.pid,
                 *said->registration, unix_now());
    }
    return has_registered;
  }

  static bool hang_up(Connection& connection, const Error& error) {
    say(connection, error_line(error.message()));
    connection.is_over = true;
    return false;
  }

  static void say(Connection& connection, const std::string& line) {
    connection.unsent += line;
    send(connection);
    if (connection.unsent.size() > kMostUnsent) connection.is_over = true;
  }

  static void send(Connection& connection) {
    const ssize_t sent =
        ::send(connection.socket.get(), connection.unsent.data(),
               connection.unsent.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      connection.unsent.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      connection.is_over = true;
    }
  }

  bool drop_what_is_over() {
    return std::erase_if(connections_, [&](const auto& entry) {
             if (!entry.second.is_over) return false;
             book_.leave(entry.first);
             return true;
           }) > 0;
  }

  void tick() {
    const double at = now();
    if (at - ticked_at_ >= kTickSeconds) {
      const CpuLoad load = meter_.measure(book_.pids(), at - ticked_at_);
      load_.busy_outside =
          kSmoothed * load_.busy_outside + (1 - kSmoothed) * load.busy_outside;
      load_.busy = load.busy;
      load_.cores = load.cores;
      ticked_at_ = at;
      limits_ = effective_limits();  // A cgroup's may change at any time.
      if (options_.heeds_other_programs) {
        book_.set_resources(with_cores(options_.node, limits_.cpus, load_));
      }
    }
    book_.tick(at, unix_now());
    NodeView view = book_.view();
    for (JobView& job : view.jobs) job.user_name = users_.of(job.user);
    std::array<char, 256> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    view.name = name.data();
    view.cores = limits_.cpus;
    view.cores_busy = load_.busy;
    view.cores_busy_outside = load_.busy_outside;
    view.memory_bytes = limits_.memory_bytes;
    const EnergyCount::Joules joules = energy_.now();
    view.processor_joules = joules.processors;
    view.accelerator_joules = joules.accelerators;
    const MutexLock lock(mutex_);
    view_ = std::move(view);
  }

  const AgentOptions options_;
  const ListeningSocket listening_;
  const OwnedFd wake_;
  // Used by the thread alone.
  JobBook book_;
  UserNames users_;
  CpuLoadMeter meter_;
  EnergyCount energy_;
  double ticked_at_ = 0;
  CpuLoad load_;
  Limits limits_;
  const std::size_t most_connections_ = std::min<std::size_t>(
      kMostConnections,
      static_cast<std::size_t>(effective_limits().open_files / 2));
  const std::size_t most_of_a_user_ =
      std::min(kMostOfAUser, most_connections_ / 2);
  std::map<MemberId, Connection> connections_;
  double accepts_at_ = 0;  ///< Nobody is let in before.
  MemberId members_ever_ = 0;

  mutable Mutex mutex_;
  NodeView view_ LEAT_GUARDED_BY(mutex_);
  std::map<std::string, Watched> watched_ LEAT_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace

Result<std::unique_ptr<Agent>> open_agent(const AgentOptions& options) {
  LEAT_TRY(ListeningSocket listening, listen_at(options.socket, options.group));
  return std::make_unique<PollingAgent>(options, std::move(listening));
}

}  // namespace leat
