#include "leat/cli/loader_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "leat/base/errors.h"
#include "leat/cli/number_checks.h"
#include "leat/plan/cache_policy.h"
#include "leat/plan/steps.h"

namespace leat {
namespace {

Result<ShuffleChoice> shuffle_of(const std::string& text) {
  if (text == "true") return ShuffleChoice::kAuto;
  if (text == "false") return ShuffleChoice::kNone;
  if (text == "full") return ShuffleChoice::kFull;
  if (text == "block") return ShuffleChoice::kBlock;
  if (text == "stream") return ShuffleChoice::kStream;
  return invalid("--shuffle {}; it is true, false, full, block or stream",
                 text);
}

}  // namespace

void LoaderFlags::add_to(CLI::App& app) {
  const auto count = [&](const char* name, auto& value, std::uint64_t most,
                         const char* help, std::uint64_t least = 1) {
    return app.add_option(name, value, help)
        ->transform(count_between(least, most));
  };
  const auto size = [&](const char* name, std::string& value,
                        const char* help) {
    return app.add_option(name, value, help)->check(size_in_bytes());
  };
  constexpr std::uint32_t kMostRanks =
      std::numeric_limits<std::uint32_t>::max();
  count("--global-batch-size", global_batch_size, Steps::kMax,
        "samples a step over all ranks")
      ->capture_default_str();
  count("--batch-size", batch_size, Steps::kMax,
        "samples a step of each rank, instead");
  app.add_option("--shuffle", shuffle, "true, false, full, block or stream")
      ->capture_default_str();
  count("--seed", seed, std::numeric_limits<std::uint64_t>::max(),
        "fixes the order and every random op", 0);
  app.add_option("--locality", locality,
                 "deal samples to the ranks whose cache met them: none, "
                 "sticky, remap or balance")
      ->capture_default_str();
  count("--shuffle-window", shuffle_window,
        std::numeric_limits<std::uint32_t>::max(),
        "pieces of shards that are mixed at a time; default: 64 in blocks, 16 "
        "in a stream");
  app.add_option(
      "--drop-last", drop_last,
      "leave out samples that do not fill a step; default: as --shuffle");
  app.add_option(
      "--ops", ops,
      "such as decode_image,random_resized_crop:224,normalize:imagenet; "
      "`leat ops` lists them");
  app.add_option("--fields", fields, "such as image,label; default: all");
  app.add_option("--on-error", on_error, "raise or substitute")
      ->capture_default_str();
  size("--memory", memory, "bytes of batches on their way, on this node");
  count("--threads", threads, kMostThreads,
        "threads that decode on this node; default: its CPUs");
  count("--max-in-flight", max_in_flight, kMostInFlight,
        "requests in flight on this node; default: 128");
  count("--fetch-size", fetch_size, FetchAhead::kMost,
        "read ahead as DELI does: in fetches of this many samples");
  count("--queue-threshold", queue_threshold, FetchAhead::kMost,
        "with --fetch-size, fetch more when this many of those asked for are "
        "left; default: 0",
        0);
  app.add_option("--cache", cache,
                 "auto: sizes chosen from the free memory and disk");
  size("--cache-ram", cache_ram,
       "bytes of memory on this node that keep fetched samples");
  app.add_option("--cache-disk", cache_disk,
                 "a folder that keeps fetched samples, for later runs too");
  size("--cache-disk-limit", cache_disk_limit,
       "bytes in it; default: half of what is free");
  app.add_option("--cache-policy", cache_policy,
                 fmt::format("one of {}; default: belady",
                             fmt::join(cache_policy_names(), ", ")));
  count("--cache-window", cache_window,
        std::numeric_limits<std::uint64_t>::max(),
        "with windowed_belady, how many reads of the job it looks ahead", 0);
  app.add_option("--cache-placement", cache_placement,
                 "with never_evict, the samples that tiers may hold: any; "
                 "first_epoch, those this node reads then; or frequency, those "
                 "it reads most often; default: any");
  app.add_option(
      "--cache-form", cache_form,
      "the form in which pictures are kept: encoded, decoded or auto");
  app.add_flag("--cache-shared", cache_shared,
               "share it with other jobs of this node that read the same data");
  count("--cache-first-within", cache_first_within, Steps::kMax,
        "deliver cached samples first, among this many positions", 0);
  app.add_option("--cache-peers", cache_peers,
                 "host:port,...: memcached servers that all ranks share")
      ->delimiter(',');
  app.add_option("--cache-peer-placement", cache_peer_placement,
                 "the node of a record: key, or frequency, the node that reads "
                 "it most often; default: key");
  app.add_option("--cache-peer-patience", cache_peer_patience,
                 "how long a peer may keep silent; default: 100 ms")
      ->check(duration_in_units());
  count("--rank", rank, kMostRanks - 1,
        "the rank of this process; default: the launcher's", 0);
  count("--world-size", world_size, kMostRanks, "the number of ranks");
  app.add_flag("--no-hash", has_no_hash,
               "no order and content hashes, when CPU is being measured");
  app.add_option("--trace", trace,
                 "a file for a trace for Perfetto: a timeline of every sample");
  app.add_option("--order-log", order_log,
                 "a new file for the samples of each step, for leat verify");
  app.add_flag("--no-tune", has_no_tune,
               "always use all of --threads and --max-in-flight");
  app.add_option(
      "--tune-trace", tune_trace,
      "a file for the tuner's observations, for leat explain --replay");
}

Result<std::optional<CacheOptions>> LoaderFlags::cache_options() const {
  std::optional<CacheOptions> options;
  if (cache.empty() && cache_ram.empty() && cache_disk.empty() &&
      cache_disk_limit.empty() && cache_policy.empty() && cache_form.empty() &&
      cache_window == 0 && cache_placement.empty() && cache_peers.empty() &&
      cache_peer_placement.empty() && cache_peer_patience.empty() &&
      !cache_shared && cache_first_within == 0) {
    return options;
  }
  options.emplace();
  if (!cache.empty()) {
    if (cache != "auto" || !cache_ram.empty() || !cache_disk.empty() ||
        !cache_disk_limit.empty()) {
      return invalid(
          "--cache is auto, or left out where --cache-ram, --cache-disk or "
          "--cache-disk-limit say the sizes");
    }
    options->is_auto = true;
  }
  if (!cache_ram.empty()) {
    LEAT_TRY(options->ram_bytes, parse_bytes(cache_ram));
  }
  options->disk = cache_disk;
  if (!cache_disk_limit.empty()) {
    LEAT_TRY(options->disk_limit_bytes, parse_bytes(cache_disk_limit));
  }
  if (!cache_policy.empty()) options->policy = cache_policy;
  options->window = cache_window;
  if (!cache_placement.empty()) {
    LEAT_TRY(options->placement, parse_placement(cache_placement));
  }
  if (!cache_form.empty()) {
    LEAT_TRY(options->form, cache_form_of(cache_form));
  }
  if (cache_peers == std::vector<std::string>{"auto"}) {
    return invalid(
        "--cache-peers auto is for jobs in Python, whose ranks find each "
        "other; start `memcached -M -I 8m` and name it, host:port");
  }
  options->is_shared = cache_shared;
  options->first_within = cache_first_within;
  options->peers = cache_peers;
  if (!cache_peer_placement.empty()) {
    LEAT_TRY(options->peer_placement, peer_placement_of(cache_peer_placement));
  }
  if (!cache_peer_patience.empty()) {
    LEAT_TRY(options->peer_patience, parse_duration(cache_peer_patience));
  }
  return options;
}

Result<LoaderOptions> LoaderFlags::loader_options() const {
  LoaderOptions options;
  options.global_batch_size = batch_size != 0 ? 0 : global_batch_size;
  options.batch_size = batch_size;
  LEAT_TRY(options.shuffle, shuffle_of(shuffle));
  options.seed = seed;
  options.shuffle_window = shuffle_window;
  LEAT_TRY(options.locality, parse_locality(locality));
  options.drop_last = drop_last;
  options.join = true;  // No step of a command meets other ranks.
  LEAT_TRY(options.ops, parse_ops(ops));
  std::istringstream names(fields);
  for (std::string name; std::getline(names, name, ',');) {
    options.fields.push_back(name);
  }
  if (on_error != "raise" && on_error != "substitute") {
    return invalid("--on-error {}; it is raise or substitute", on_error);
  }
  options.on_error =
      on_error == "raise" ? OnError::kRaise : OnError::kSubstitute;
  if (!memory.empty()) {
    LEAT_TRY(options.memory_bytes, parse_bytes(memory));
  }
  options.threads = threads;
  options.max_in_flight = max_in_flight;
  if (fetch_size != 0) {
    options.fetch_ahead = FetchAheadOptions{.fetch_size = fetch_size,
                                            .queue_threshold = queue_threshold};
  } else if (queue_threshold != 0) {
    return invalid(
        "--queue-threshold without --fetch-size; give the number of samples of "
        "a fetch");
  }
  LEAT_TRY(options.cache, cache_options());
  if (rank.has_value() != world_size.has_value()) {
    return invalid("--rank and --world-size go together");
  }
  if (rank) options.rank = Rank{.rank = *rank, .world_size = *world_size};
  options.hashes = !has_no_hash;
  options.trace = trace;
  options.order_log = order_log;
  options.tune.is_on = !has_no_tune;
  options.tune.trace = tune_trace;
  return options;
}

void StoreFlags::add_to(CLI::App& app) {
  app.add_option("--endpoint-url", endpoint_url,
                 "the S3 endpoint; default: the environment, the profile, AWS");
  for (const SchemeOption& option : scheme_options()) {
    std::string flag = "--" + std::string(option.name);
    std::ranges::replace(flag, '_', '-');
    app.add_option(flag, of_scheme[std::string(option.name)],
                   std::string(option.doc));
  }
  app.add_flag("--no-sign-request", no_sign_request,
               "send requests unsigned, for public buckets");
  app.add_flag("--requester-pays", requester_pays,
               "you pay for requests and bytes, for buckets that want that");
  app.add_option("--patience", patience_seconds,
                 "how many seconds an outage of the store is ridden out")
      ->check(amount_between(0, kMostPatienceSeconds))
      ->capture_default_str();
}

StoreOptions StoreFlags::store_options() const {
  StoreOptions options;
  options.endpoint_url = endpoint_url;
  options.of_scheme = of_scheme;
  std::erase_if(options.of_scheme,
                [](const auto& option) { return option.second.empty(); });
  options.no_sign_request = no_sign_request;
  options.requester_pays = requester_pays;
  options.patience = from_seconds(patience_seconds);
  return options;
}

}  // namespace leat
