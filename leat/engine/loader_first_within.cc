// Samples that are cached come first, within a window of the order: for jobs
// that read the same at once, so that each meets what another has brought.

#include <fmt/format.h>

#include <utility>

#include "leat/engine/loader_machine.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// Each position is looked up once a step: a tenth of a second for so many.
constexpr std::uint64_t kMostWithin = std::uint64_t{1} << 18;

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

Result<void> Loader::Machine::check_first_within() const {
  const std::uint64_t within = first_within();
  if (within == 0) return {};
  if (within > kMostWithin) {
    return refuse(fmt::format("first_within={} of a cache; at most {}", within,
                              kMostWithin));
  }
  if (options.locality != Locality::kNone) {
    return refuse(
        fmt::format("first_within={} of a cache and locality=\"{}\" both say "
                    "which samples come when; leave one out",
                    within, to_string(options.locality)));
  }
  const bool has_shards = dataset.catalogue == nullptr ||
                          dataset.catalogue->layout() == Layout::kShards;
  if (has_shards && order.shuffle != Shuffle::kFull) {
    return refuse(
        fmt::format("first_within={} of a cache needs samples that are read "
                    "one by one, and these shards are read in pieces; give "
                    "shuffle=\"full\", or leave it out",
                    within));
  }
  (rank.rank == 0 ? log_warning : log_debug)(fmt::format(
      "first_within={}: samples that are cached come up to {} positions before "
      "their turn, so the order depends on the cache, not on the seed alone; "
      "each epoch is still a permutation, and a state says where it stands",
      within, within - 1));
  return {};
}

Result<void> Loader::Machine::check_left_behind(
    const LoaderState& state) const {
  if (!state.left_behind || state.left_behind->empty()) return {};
  if (context == nullptr || context->pieces != nullptr ||
      context->locality != Locality::kNone) {
    return refuse(
        "the state has samples that were overtaken (first_within=), which this "
        "loader could not go back to: it reads pieces of shards, or deals by "
        "locality");
  }
  LEAT_TRY(const Steps steps,
           Steps::make({.samples = samples().value_or(0),
                        .start = state.position,
                        .global_batch = options.batch_size != 0
                                            ? state.global_batch_size
                                            : global_batch,
                        .rank = rank,
                        .tail = tail}));
  LEAT_TRY_VOID(ready_first(steps, *state.left_behind));
  return {};
}

Result<std::optional<ReadyFirst>> Loader::Machine::ready_first(
    const Steps& steps, const std::vector<std::uint64_t>& behind) const {
  if (first_within() == 0 && behind.empty()) {
    return std::optional<ReadyFirst>();
  }
  LEAT_TRY(ReadyFirst first,
           ReadyFirst::make(steps, dataset.catalogue->samples(), first_within(),
                            behind));
  return std::optional<ReadyFirst>(std::move(first));
}

}  // namespace leat
