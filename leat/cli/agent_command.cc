// leat agent    Shares this node among the loaders that run on it.

#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "leat/agent/agent.h"
#include "leat/agent/public_text.h"
#include "leat/agent/view_json.h"
#include "leat/agent/view_server.h"
#include "leat/agent/wire/unix_socket.h"
#include "leat/base/mutex.h"
#include "leat/base/units.h"
#include "leat/cli/commands.h"
#include "leat/cli/number_checks.h"
#include "leat/runtime/limits.h"
#include "leat/store/url.h"

namespace leat {
namespace {

struct AgentFlags {
  std::string socket;
  std::string group;
  std::string objective = "throughput";
  std::vector<std::string> bandwidths;
  std::string cache_ram;
  std::string cache_disk;
  double floor = 0.5;
  double threads = 0;
  double max_in_flight = 0;
  std::optional<std::uint16_t> port;
  bool is_json = false;
};

Error wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, what};
}

Result<gid_t> group_of(const std::string& name) {
  std::array<char, 16384> text;
  ::group entry{};
  ::group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, text.data(), text.size(), &found) !=
          0 ||
      found == nullptr) {
    return wrong("--group " + name +
                 ": there is no such group; `getent group` lists them");
  }
  return found->gr_gid;
}

/// 0 for none.
Result<double> bytes_of(const std::string& given, const std::string& flag) {
  if (given.empty()) return 0.0;
  const Result<std::uint64_t> bytes = parse_bytes(given);
  if (!bytes) {
    return wrong(flag + " " + given + ": it must be bytes such as 8GiB");
  }
  return static_cast<double>(*bytes);
}

/// The sockets at which loaders of all users look for an agent.
Result<std::vector<std::string>> sockets_of(const AgentFlags& flags,
                                            const Env& env) {
  if (!flags.socket.empty()) return std::vector{flags.socket};
  std::vector<std::string> paths = agent_paths(env);
  if (paths.empty()) {
    return wrong("LEAT_AGENT is off: unset it or give --socket");
  }
  if (!flags.group.empty() && !value_of(env, "LEAT_AGENT")) {
    return std::vector<std::string>{kSocketOfAll};
  }
  return paths;
}

/// At the first place where one may be.
Result<std::unique_ptr<Agent>> open_at(const std::vector<std::string>& sockets,
                                       AgentOptions& options) {
  for (const std::string& socket : sockets) {
    options.socket = socket;
    auto agent = open_agent(options);
    const bool is_elsewhere =
        !agent && (agent.error().code() == ErrorCode::kPermissionDenied ||
                   agent.error().code() == ErrorCode::kNotFound);
    if (!is_elsewhere || socket == sockets.back()) return agent;
  }
  return wrong("no place for a socket");
}

/// RATE, for all reads, or BUCKET=RATE.
Result<void> read_bandwidth(const std::string& given, AgentOptions& options) {
  const auto refuse = [&](const std::string& why) {
    return wrong("--bandwidth " + public_text(given) + ": " + why);
  };
  // No rate has one.
  const std::size_t equals = given.rfind('=');
  const bool is_bucket = equals != std::string::npos;
  const Result<std::uint64_t> rate =
      parse_bytes(is_bucket ? given.substr(equals + 1) : given);
  if (!rate || *rate == 0) {
    return refuse(
        "it must be bytes a second such as 1GB, or of one bucket such as "
        "s3://photos=500MB");
  }
  const auto limit = static_cast<double>(*rate);
  if (!is_bucket) {
    if (std::isfinite(options.node.bytes_per_second)) {
      return refuse("the bandwidth of all buckets is given already");
    }
    options.node.bytes_per_second = limit;
    return {};
  }
  const Result<Url> url = parse_url(given.substr(0, equals));
  if (!url) return refuse(url.error().message());
  const std::string bucket = url->bucket();
  if (bucket.empty() || !url->path.empty()) {
    return refuse("name a whole bucket, such as s3://photos, or a host");
  }
  if (std::ranges::find(options.buckets, bucket) != options.buckets.end()) {
    return refuse("that of this bucket is given already");
  }
  options.buckets.push_back(bucket);
  options.node.bucket_bytes_per_second.push_back(limit);
  return {};
}

Result<AgentOptions> options_of(const AgentFlags& flags) {
  AgentOptions options;
  if (!flags.group.empty()) {
    if (::geteuid() != 0) {
      return wrong(
          "--group needs root: loaders heed an agent of their own user or of "
          "root");
    }
    LEAT_TRY(options.group, group_of(flags.group));
  }
  options.node.threads = flags.threads > 0 ? flags.threads : kUnbounded;
  if (flags.max_in_flight > 0) options.node.in_flight = flags.max_in_flight;
  for (const std::string& bandwidth : flags.bandwidths) {
    if (bandwidth.empty()) continue;
    LEAT_TRY_VOID(read_bandwidth(bandwidth, options));
  }
  LEAT_TRY(const double ram, bytes_of(flags.cache_ram, "--cache-ram"));
  LEAT_TRY(options.node.disk_bytes, bytes_of(flags.cache_disk, "--cache-disk"));
  options.node.cache_bytes = ram + options.node.disk_bytes;
  options.sharing.allocation.floor = flags.floor;
  options.sharing.allocation.objective = flags.objective == "fairness"
                                             ? Objective::kFairness
                                             : Objective::kThroughput;
  return options;
}

void wait_for(const std::stop_token& stop) {
  Mutex mutex;
  CondVar woken;
  MutexLock lock(mutex);
  woken.wait(lock, stop, [] { return false; });
}

Result<void> run_agent(const AgentFlags& flags, CommandContext& context) {
  LEAT_TRY(AgentOptions options, options_of(flags));
  (void)raise_open_files();  // Without it, fewer loaders may connect.
  LEAT_TRY(const std::vector<std::string> sockets,
           sockets_of(flags, context.env));
  LEAT_TRY(const auto agent, open_at(sockets, options));
  std::unique_ptr<ViewServer> page;
  if (flags.port) {
    LEAT_TRY(
        page,
        open_view_server(
            {.port = *flags.port}, [&agent] { return agent->view(); },
            [&agent](const std::string& job) { return agent->trace(job); }));
  }
  context.out << "listening on " << options.socket << std::endl;
  if (page != nullptr) context.out << "showing " << page->url() << std::endl;
  wait_for(context.stop);
  if (flags.is_json) context.out << view_json(agent->view()) << '\n';
  return {};
}

std::function<Result<void>(CommandContext&)> add_agent(CLI::App& app) {
  auto flags = std::make_shared<AgentFlags>();
  app.add_option("--socket", flags->socket,
                 "the socket for loaders; without: $LEAT_AGENT, else the first "
                 "that may be made of $XDG_RUNTIME_DIR/leat/agent.sock, "
                 "/run/leat/agent.sock and /tmp/leat-UID/agent.sock");
  app.add_option(
      "--group", flags->group,
      "a group whose members may connect, too (needs root; the socket is "
      "/run/leat/agent.sock); without: this user and root");
  app.add_option(
         "--objective", flags->objective,
         "throughput: the highest sum; fairness: the most for the slowest job")
      ->check(CLI::IsMember({"throughput", "fairness"}))
      ->capture_default_str();
  app.add_option("--floor", flags->floor,
                 "part of an even split's speed that every job keeps")
      ->check(amount_between(0, 1))
      ->capture_default_str();
  app.add_option("--threads", flags->threads,
                 "threads that decode, of all jobs; without: one for each core")
      ->check(amount_between(1, 4096));
  app.add_option(
         "--max-in-flight", flags->max_in_flight,
         "requests in flight of all jobs; without: as many as each wants")
      ->check(amount_between(1, 1 << 20));
  app.add_option("--bandwidth", flags->bandwidths,
                 "bytes a second that all jobs together read, such as 1GB; or, "
                 "of one bucket, such as s3://photos=500MB: once for each")
      ->take_all();
  app.add_option("--cache-ram", flags->cache_ram,
                 "RAM of the caches of all jobs, such as 8GiB; without: each "
                 "keeps the size that its user gave it");
  app.add_option("--cache-disk", flags->cache_disk,
                 "disk of the caches of all jobs, likewise");
  app.add_option("--port", flags->port,
                 "show a page, and metrics, at this port; 0 for a free one")
      ->transform(count_between(0, std::numeric_limits<std::uint16_t>::max()));
  app.add_flag("--json", flags->is_json, "print its last content at the end");
  app.footer("Example:\n  leat agent --port 5328");
  return
      [flags](CommandContext& context) { return run_agent(*flags, context); };
}

}  // namespace

const Command kAgentCommand{
    .name = "agent",
    .summary = "share this node among the loaders on it",
    .add = &add_agent,
};

}  // namespace leat
