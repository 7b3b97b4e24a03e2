#include "leat/engine/agent_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "leat/agent/wire/unix_socket.h"
#include "leat/base/clock.h"
#include "leat/base/owned_fd.h"
#include "leat/runtime/log.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(1);
/// Samples are traced for this long after the agent last asked.
constexpr Nanoseconds kTraced = std::chrono::seconds(4);

WireRates wire_rates(const LoaderTotals& totals, const Metrics& metrics) {
  WireRates wire{.elapsed_seconds = to_seconds(totals.elapsed),
                 .samples = static_cast<double>(totals.samples),
                 .epochs = static_cast<double>(totals.epochs),
                 .training_seconds = to_seconds(totals.training),
                 .reads = static_cast<double>(totals.reads),
                 .read_seconds = to_seconds(totals.read_time),
                 .tasks = static_cast<double>(totals.tasks),
                 .busy_seconds = to_seconds(totals.busy),
                 .threads = static_cast<double>(totals.threads),
                 .in_flight = static_cast<double>(totals.in_flight),
                 .totals = totals_by(metrics),
                 .kept_bytes = totals.kept_bytes,
                 .saved_seconds = totals.saved_seconds,
                 .decoded_hits = totals.decoded_hits};
  const auto tell = [&](const JobCounter& counter, auto total) {
    wire.totals[&counter] = static_cast<double>(total);
  };
  // Includes the wait of a next() that has not returned yet.
  tell(counters::kWaitSeconds, to_seconds(totals.wait + totals.waiting));
  // The requests and their prices, read at one moment.
  tell(counters::kGets, totals.gets);
  tell(counters::kLists, totals.lists);
  tell(counters::kReadBytes, totals.read_bytes);
  const auto& [requests, transfer, stalled] = totals.dollars;
  tell(counters::kStalledDollars, stalled);
  if (requests) tell(counters::kRequestDollars, *requests);
  if (transfer) tell(counters::kTransferDollars, *transfer);
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    wire.stalls[std::string(to_string(stall))] =
        to_seconds(totals.stalls[stall]);
  }
  return wire;
}

class PollingLink final : public AgentLink {
 public:
  explicit PollingLink(AgentLinkOptions options)
      : options_(std::move(options)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        thread_(
            start_thread([this](const std::stop_token& stop) { run(stop); })) {}

  ~PollingLink() override {
    thread_.request_stop();
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
    if (::getpid() == pid_) hang_up();
  }

 private:
  void run(const std::stop_token& stop) {
    name_this_thread("leat-link");
    TimePoint due = SteadyClock().now();
    while (!stop.stop_requested()) {
      if (SteadyClock().now() >= due) {
        if (!socket_) look();
        if (socket_) report();
        due = SteadyClock().now() + kEvery;
      }
      wait_until(due);
    }
  }

  void look() {
    for (const std::string& path : options_.paths) {
      Result<OwnedFd> found = connect_to(path);
      if (!found) continue;
      socket_ = std::move(*found);
      reader_ = LineReader();
      unsent_.clear();
      say(line_of(options_.registration));
      return;
    }
  }

  void report() {
    WireRates rates = wire_rates(options_.totals(), options_.metrics());
    rates.elsewhere = options_.elsewhere();
    say(line_of(rates));
    if (SteadyClock().now() < traced_until_) say(line_of(options_.trace()));
  }

  void wait_until(TimePoint due) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(due - SteadyClock().now());
    std::array<pollfd, 2> sources{
        pollfd{.fd = wake_.get(), .events = POLLIN},
        pollfd{.fd = socket_.get(),
               .events = static_cast<short>(POLLIN |
                                            (unsent_.empty() ? 0 : POLLOUT))}};
    const auto wait = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    if (::poll(sources.data(), sources.size(), wait) <= 0) return;
    if ((sources[1].revents & POLLOUT) != 0) send();
    if ((sources[1].revents & ~POLLOUT) != 0) receive();
  }

  void say(const std::string& line) {
    // An agent that has stopped reading is sent no further reports.
    if (unsent_.size() > kMostLineBytes) return;
    unsent_ += line;
    send();
  }

  void send() {
    if (!socket_) return;
    const ssize_t sent =
        ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
    } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      lose();
    }
  }

  void receive() {
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return lose();
    if (!reader_.add(
            std::string_view(bytes.data(), static_cast<std::size_t>(got)))) {
      return lose();
    }
    while (const auto line = reader_.next()) {
      const Result<AgentMessage> said = parse_agent_line(*line);
      if (!said) return lose();
      if (said->wants_trace) {
        traced_until_ = SteadyClock().now() + kTraced;
      } else if (said->share) {
        options_.set_share(*said->share);
        if (said->pace) options_.set_pace(*said->pace);
      } else if (!std::exchange(has_warned_, true)) {
        log_warning("the agent of this node turned this loader away: " +
                    said->error);
      }
    }
  }

  /// Drops the connection; the share stays as it is.
  void lose() {
    hang_up();
    unsent_.clear();
  }

  /// Processes that were forked meanwhile hold the socket, too: to close ours
  /// would not end the connection.
  void hang_up() {
    if (socket_) (void)::shutdown(socket_.get(), SHUT_RDWR);
    socket_ = OwnedFd();
  }

  const pid_t pid_ = ::getpid();
  const AgentLinkOptions options_;
  const OwnedFd wake_;
  // Used by the link's thread alone.
  OwnedFd socket_;
  LineReader reader_;
  std::string unsent_;
  bool has_warned_ = false;
  TimePoint traced_until_{};
  std::jthread thread_;
};

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// The script or module that Python runs, of its command line:
/// python -u train.py --token ..., python -um package.train ...
std::optional<std::string_view> python_script(
    const std::vector<std::string_view>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    // Only a program's text has several lines.
    if (word.find('\n') != std::string_view::npos) return std::nullopt;
    if (!word.starts_with('-')) return base_name(word);
    if (word == "-") return std::nullopt;  // The program comes as input.
    if (word.starts_with("--")) {
      if (word == "--check-hash-based-pycs") ++i;
      continue;
    }
    // Short options may be written together. One of these takes the rest of the
    // word as its value, or else the next word.
    const std::size_t at = word.find_first_of("cmWX", 1);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = word.substr(at + 1);
    if (word[at] == 'c') return std::nullopt;  // The value is the program.
    if (word[at] == 'm' && !rest.empty()) return rest;
    if (word[at] == 'm') {
      return i + 1 < words.size() ? std::optional(words[i + 1]) : std::nullopt;
    }
    if (rest.empty()) ++i;
  }
  return std::nullopt;
}

}  // namespace

std::string job_name(const Env& env, std::string_view command_line) {
  for (const char* name : {"LEAT_JOB_NAME", "SLURM_JOB_NAME"}) {
    if (auto said = value_of(env, name)) return *said;
  }
  std::vector<std::string_view> words;
  while (!command_line.empty() && words.size() < 64) {
    const std::size_t end = command_line.find('\0');
    words.push_back(command_line.substr(0, end));
    command_line.remove_prefix(
        end == std::string_view::npos ? command_line.size() : end + 1);
  }
  if (words.empty()) return "";
  const std::string_view program = base_name(words[0]);
  if (!program.starts_with("python")) return std::string(program);
  return std::string(python_script(words).value_or(program));
}

std::unique_ptr<AgentLink> open_agent_link(AgentLinkOptions options) {
  return std::make_unique<PollingLink>(std::move(options));
}

std::string job_key(const Env& env, const JobLoader& loader) {
  std::string key;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"}) {
    // torchrun says "none" unless it was given an id.
    const auto id = value_of(env, name);
    if (!key.empty() || !id || *id == "none") continue;
    key = fmt::format("{} {} ", name, *id);
  }
  // An allocation may hold several trainings, and an id may be given twice, but
  // only one training can meet at such a place.
  const auto port = value_of(env, "MASTER_PORT");
  if (port) {
    key +=
        fmt::format("{}:{} ", value_of(env, "MASTER_ADDR").value_or(""), *port);
  }
  if (key.empty() || loader.world_size == 1) {
    return fmt::format("{}.{}", ::getpid(),
                       SteadyClock().now().time_since_epoch().count());
  }
  // Ranks that meet at a place may each be a step of their own.
  if (const auto step = value_of(env, "SLURM_STEP_ID"); step && !port) {
    key += fmt::format("step {} ", *step);
  }
  // The dataset is last, since a long text is cut.
  return fmt::format("{}loader {} of {} ranks {}", key, loader.ordinal,
                     loader.world_size, loader.dataset);
}

}  // namespace leat
