// Whether every rank gets samples, and in as many steps as the others.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "leat/engine/loader_machine.h"

namespace leat {
namespace {

constexpr std::string_view kRemedies =
    "If ranks meet in each step, as in DistributedDataParallel, they would "
    "pair steps of two epochs, or hang. Say drop_last=True, which leaves these "
    "samples out, or drop_last=\"pad\", which fills the step up, or "
    "drop_last=\"join\" if ranks may differ: they do not meet in the loop, or "
    "they do in torch's Join";

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

}  // namespace

Result<void> Loader::Machine::check_steps(std::uint64_t from) const {
  if (told_order != nullptr) return {};  // It is once an epoch is told.
  return check_steps_of(epoch, from);
}

Result<void> Loader::Machine::check_steps_of(std::uint64_t which,
                                             std::uint64_t from) const {
  const Result<Steps> steps = steps_of(which, from);
  const std::optional<std::uint64_t> samples = samples_in(which);
  if (!steps) return steps.error();
  const std::uint64_t world = rank.world_size;
  if (tail != Tail::kKeep || options.join || world == 1) return {};
  if (!samples) {
    return refuse(fmt::format(
        "drop_last=False of shards that are yet to be indexed: nobody knows "
        "whether the last step has a sample for each of {} ranks. {}",
        world, kRemedies));
  }
  const std::uint64_t last = (*samples - from) % global_batch;
  if (last == 0 || last >= world) return {};
  return refuse(fmt::format(
      "{} of {} ranks would get {} batches and the others {}: of {} samples, "
      "{} remain for the last step, which are too few for all. {}",
      last, world, steps->count(), steps->count() - 1, *samples - from, last,
      kRemedies));
}

Result<void> Loader::Machine::check_world_size() const {
  const std::uint64_t samples = dataset.catalogue->samples();
  if (rank.world_size <= samples) return {};
  return refuse(fmt::format(
      "world_size={} ranks, but {} has {} samples: some would get none; "
      "use fewer ranks",
      rank.world_size, dataset.url, samples));
}

}  // namespace leat
