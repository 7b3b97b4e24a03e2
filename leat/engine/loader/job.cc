#include "leat/engine/loader/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <mutex>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/engine/read_sizes.h"
#include "leat/plan/wait_model.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostChosenMemory = 2 * kGiB;

Tail tail_of(const LoaderOptions& options) {
  if (options.pad) return Tail::kPad;
  const bool drops =
      options.drop_last.value_or(options.shuffle != ShuffleChoice::kNone);
  return drops ? Tail::kDrop : Tail::kKeep;
}

/// The user's option wins. Then the launcher has to say only who shares the
/// node, and may not be able to: Lightning's leaves variables out.
Result<Launch> launch_of(const LoaderOptions& options, const Env& env) {
  Result<Launch> launch = read_launch(env);
  if (!options.rank) return launch;
  Launch given{.rank = options.process.value_or(*options.rank),
               .local = launch ? launch->local : Launch{}.local,
               .is_local_known = launch && launch->is_local_known};
  if (!given.is_local_known) place_on_node(given, env);
  return given;
}

/// "t.json" of the third of several: "t.rank3.json".
std::string file_of(const std::string& file, Rank rank) {
  std::filesystem::path path = file;
  if (rank.world_size > 1) {
    path.replace_extension(
        fmt::format(".rank{}{}", rank.rank, path.extension().string()));
  }
  return path.string();
}

Shuffle shuffle_of(ShuffleChoice choice, Layout layout) {
  switch (choice) {
    case ShuffleChoice::kNone:
      return Shuffle::kNone;
    case ShuffleChoice::kAuto:
      return usual_shuffle(layout);
    case ShuffleChoice::kFull:
      return Shuffle::kFull;
    case ShuffleChoice::kBlock:
      return Shuffle::kBlock;
    case ShuffleChoice::kStream:
      return Shuffle::kStream;
  }
  return Shuffle::kNone;
}

}  // namespace

std::string Job::file_of_rank(const std::string& file) const {
  return file_of(file, rank);
}

std::string Job::file_of_process(const std::string& file) const {
  return file_of(file, process);
}

std::uint64_t usual_memory_bytes(const Limits& limits) {
  // The rest is left to the model, the framework and the user's own data.
  return std::min(kMostChosenMemory, limits.memory_bytes / 4);
}

bool Job::reads_pieces(Layout layout) const {
  if (layout != Layout::kShards || order.shuffle == Shuffle::kFull) {
    return false;
  }
  if (order.shuffle == Shuffle::kDrawn) {
    return mixed != nullptr && mixed->blocks() != nullptr && !options.cache &&
           locality() == Locality::kNone && !options.fetch_ahead;
  }
  if (rank.world_size == 1) return true;
  // In a stream's windows, and where homes or placements decide, the samples of
  // a rank lie scattered.
  if (order.shuffle == Shuffle::kStream || locality() != Locality::kNone ||
      options.fetch_ahead) {
    return false;
  }
  // Without a shuffle a rank takes a run of each step. A record is a whole
  // piece, of which it would use that little.
  return !options.cache || (order.shuffle == Shuffle::kBlock &&
                            options.cache->placement == Placement::kAny);
}

Result<std::uint64_t> global_batch_of(const LoaderOptions& options, Rank rank) {
  if ((options.global_batch_size == 0) == (options.batch_size == 0)) {
    return invalid(
        options.batch_size == 0
            ? "the batch size is 0; give global_batch_size=, or batch_size= "
              "for each rank"
            : "both global_batch_size= and batch_size= are given; give one");
  }
  if (options.batch_size != 0) {
    if (options.batch_size > Steps::kMax / rank.world_size) {
      return invalid("batch_size= is past any that can be");
    }
    return options.batch_size * rank.world_size;
  }
  return options.global_batch_size;
}

Result<void> settle_rank(Job& job, const Env& env) {
  LEAT_TRY(const Launch launch, launch_of(job.options, env));
  job.process = launch.rank;
  job.rank = job.options.rank.value_or(launch.rank);
  job.local = launch.local;
  job.knows_node = launch.is_local_known || job.process.world_size == 1;
  if (job.rank.world_size != 0 && job.rank.rank < job.rank.world_size) {
    return {};
  }
  return invalid("rank={} of world_size={}; ranks count from 0", job.rank.rank,
                 job.rank.world_size);
}

void settle_order(Job& job, const Catalogue* catalogue) {
  const LoaderOptions& options = job.options;
  job.order.seed = options.seed;
  if (options.weights != nullptr) {
    job.order.shuffle = Shuffle::kDrawn;
    job.order.drawn = options.weights.get();
  } else if (options.is_given) {
    job.order.shuffle = Shuffle::kDrawn;
    job.told_order = std::make_shared<GivenOrder>(
        catalogue == nullptr ? 0 : catalogue->samples());
    job.order.drawn = job.told_order.get();
  } else {
    job.order.shuffle =
        shuffle_of(options.shuffle, catalogue == nullptr ? Layout::kShards
                                                         : catalogue->layout());
  }
  job.order.window_blocks = options.shuffle_window.value_or(
      usual_window(job.order.shuffle, catalogue));
}

Result<void> settle_mix(Job& job, const Catalogue* catalogue,
                        std::uint64_t global_batch) {
  const LoaderOptions& options = job.options;
  if (!options.mix) return {};
  if (catalogue == nullptr || options.shuffle == ShuffleChoice::kStream) {
    return invalid(
        "shuffle=\"stream\" of a mix, whose sources need an index; give "
        "shuffle=True, and make indexes with `leat index`");
  }
  if (options.weights != nullptr || options.is_given) {
    return invalid(
        "sampler= and a mix both say which sample comes when; leave sampler= "
        "out, or give a dataset that leat.Dataset.concat joins");
  }
  OrderOptions each = job.order;
  const auto sources = std::bit_ceil(options.mix->sources.size());
  if (!options.shuffle_window && each.shuffle == Shuffle::kBlock) {
    each.window_blocks = static_cast<std::uint32_t>(
        std::max<std::size_t>(1, each.window_blocks / sources));
  }
  std::shared_ptr<const BlockMap> blocks;
  if (each.shuffle == Shuffle::kBlock) {
    blocks = std::make_shared<const BlockMap>(
        BlockMap::build(*catalogue, piece_bytes_of(*catalogue)));
  }
  MixOptions mix = *options.mix;
  mix.global_batch = global_batch;
  LEAT_TRY(job.mixed, MixedOrder::make(std::move(mix), each, blocks));
  if (job.mixed->samples() != catalogue->samples()) {
    return invalid("the sources of the mix have {} samples, and the dataset {}",
                   job.mixed->samples(), catalogue->samples());
  }
  job.order = {.shuffle = Shuffle::kDrawn,
               .seed = each.seed,
               .window_blocks = each.window_blocks,
               .drawn = job.mixed.get()};
  return {};
}

Result<void> settle_tail(Job& job) {
  const LoaderOptions& options = job.options;
  if (options.pad && options.drop_last.value_or(false)) {
    return invalid(
        "pad keeps the last step and drop_last drops it; give one of the two");
  }
  if (options.shuffle_window == std::uint32_t{0}) {
    return invalid("shuffle_window=0; a window has at least one piece");
  }
  if (options.memory_bytes == std::uint64_t{0}) {
    return invalid("memory=0; it holds at least one batch, such as \"2GiB\"");
  }
  job.tail = tail_of(options);
  return {};
}

Result<Allowance> settle_limits(Job& job, const Limits& limits,
                                const Catalogue* catalogue) {
  const auto check = [](const char* name, std::size_t given,
                        std::size_t most) -> Result<void> {
    if (given <= most) return {};
    return invalid("{}={}; it is 1 to {}, or left out to be chosen", name,
                   given, most);
  };
  LoaderOptions& options = job.options;
  LEAT_TRY_VOID(check("threads", options.threads, kMostThreads));
  LEAT_TRY_VOID(check("max_in_flight", options.max_in_flight, kMostInFlight));
  const std::uint32_t ranks = job.local.world_size;
  RankLimits usual{.local_ranks = ranks,
                   .in_flight_was_asked = options.max_in_flight != 0,
                   .threads_were_asked = options.threads != 0,
                   .cores = limits.threads()};
  if (options.threads == 0) options.threads = limits.threads();
  if (options.max_in_flight == 0) {
    const bool has_pieces =
        catalogue != nullptr && job.reads_pieces(catalogue->layout());
    options.max_in_flight =
        usual_in_flight(catalogue, has_pieces, kDefaultInFlight);
  }
  if (!options.memory_bytes) {
    options.memory_bytes = usual_memory_bytes(limits);
  }
  usual.in_flight = std::max<std::size_t>(1, options.max_in_flight / ranks);
  usual.threads = std::max<std::size_t>(1, options.threads / ranks);
  usual.memory_bytes = *options.memory_bytes / ranks;
  const bool calls_users = std::ranges::any_of(
      options.ops, [](const OpSpec& op) { return op.function != nullptr; });
  return Allowance(usual, limits.open_files, calls_users);
}

void tell_shares(const Job& job, const RankLimits& mine) {
  if (job.process.rank != 0 || (mine.local_ranks == 1 && job.knows_node)) {
    return;
  }
  static std::once_flag is_told;  // Once, however many loaders a process makes.
  if (!job.knows_node) {
    std::call_once(is_told, [&] {
      log_info(fmt::format(
          "nobody says how many of the {} ranks run on this node: each takes "
          "{} "
          "threads, {} requests in flight and {} of memory; if several do, set "
          "LOCAL_RANK and LOCAL_WORLD_SIZE, as torchrun does, and they share",
          job.process.world_size, mine.threads, mine.in_flight,
          format_bytes(mine.memory_bytes)));
    });
    return;
  }
  std::call_once(is_told, [&] {
    log_info(fmt::format(
        "{} ranks on this node share {} threads, {} requests in flight and {} "
        "of memory: {}, {} and {} each",
        mine.local_ranks, job.options.threads, job.options.max_in_flight,
        format_bytes(*job.options.memory_bytes), mine.threads, mine.in_flight,
        format_bytes(mine.memory_bytes)));
  });
}

}  // namespace leat
