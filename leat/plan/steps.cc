#include "leat/plan/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "leat/base/check.h"

namespace leat {
namespace {

Error invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check_rank(const Rank& rank) {
  if (rank.world_size == 0) {
    return invalid(
        "world_size is 0: it counts this process too, so it is at "
        "least 1");
  }
  if (rank.rank >= rank.world_size) {
    return invalid(
        fmt::format("rank {} is not below world_size {}: ranks count from 0",
                    rank.rank, rank.world_size));
  }
  return {};
}

Result<void> check_batch(std::uint64_t global_batch, std::uint64_t world) {
  if (global_batch == 0) {
    return invalid(
        "the global batch is 0: it must hold at least one sample "
        "of each rank");
  }
  if (global_batch > Steps::kMax) {
    return invalid(
        fmt::format("a global batch of {} is past 2^48", global_batch));
  }
  if (global_batch % world != 0) {
    const std::uint64_t below = global_batch - global_batch % world;
    return invalid(fmt::format(
        "a global batch of {} does not divide among {} ranks: take {}",
        global_batch, world,
        below == 0 ? fmt::format("{}", world)
                   : fmt::format("{} or {}", below, below + world)));
  }
  return {};
}

}  // namespace

Result<Steps> Steps::make(
    const StepOptions& options,
    std::shared_ptr<const std::vector<std::uint64_t>> ends) {
  LEAT_TRY_VOID(check_rank(options.rank));
  LEAT_TRY_VOID(check_batch(options.global_batch, options.rank.world_size));
  if (options.samples > kMax) {
    return invalid(fmt::format("{} samples are past 2^48", options.samples));
  }
  if (options.start > options.samples) {
    return invalid(fmt::format(
        "position {} is past the end of the epoch, which has {} samples: the "
        "state is of another dataset",
        options.start, options.samples));
  }
  if (ends != nullptr) {
    Steps steps(options);
    steps.ends_ = std::move(ends);
    LEAT_TRY_VOID(steps.begin_in_ends());
    return steps;
  }
  if (options.tail == Tail::kDrop && options.samples > 0 &&
      options.samples < options.global_batch) {
    return invalid(fmt::format(
        "dropping the last incomplete step would leave nothing: the epoch has "
        "{} samples, a step {}; take drop_last=False or a smaller batch",
        options.samples, options.global_batch));
  }
  return Steps(options);
}

Result<void> Steps::begin_in_ends() {
  const std::vector<std::uint64_t>& ends = *ends_;
  if (options_.rank.world_size != 1) {
    return invalid("steps of unequal size are of one rank alone");
  }
  options_.tail = Tail::kKeep;
  const auto after = std::ranges::upper_bound(ends, options_.start);
  first_ = static_cast<std::size_t>(after - ends.begin());
  if (first_ == 0 || ends[first_ - 1] == options_.start) return {};
  return invalid(
      fmt::format("position {} is within a step: steps are not as they were",
                  options_.start));
}

std::uint64_t Steps::count() const {
  if (ends_ != nullptr) return ends_->size() - first_;
  const std::uint64_t rest = options_.samples - options_.start;
  const std::uint64_t whole = rest / options_.global_batch;
  const bool has_tail = rest % options_.global_batch != 0;
  return whole + (has_tail && options_.tail != Tail::kDrop ? 1 : 0);
}

StepSlice Steps::all_ranks(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  if (ends_ != nullptr) {
    const std::vector<std::uint64_t>& ends = *ends_;
    const std::size_t at = first_ + step;
    return {at == 0 ? options_.start : ends[at - 1], ends[at]};
  }
  const std::uint64_t begin = options_.start + step * options_.global_batch;
  const std::uint64_t length =
      options_.tail == Tail::kPad
          ? options_.global_batch
          : std::min(options_.global_batch, options_.samples - begin);
  return {begin, begin + length};
}

std::uint64_t Steps::step_of(std::uint64_t position) const {
  LEAT_CHECK(position >= options_.start);
  if (ends_ == nullptr) {
    return (position - options_.start) / options_.global_batch;
  }
  const auto after = std::ranges::upper_bound(*ends_, position);
  return static_cast<std::uint64_t>(after - ends_->begin()) - first_;
}

bool Steps::is_whole(std::uint64_t step) const {
  return ends_ != nullptr ||
         options_.samples - all_ranks(step).begin >= options_.global_batch;
}

StepSlice Steps::slice(std::uint64_t step) const {
  const StepSlice all = all_ranks(step);
  const std::uint64_t begin = all.begin;
  const std::uint64_t length = all.size();
  const std::uint64_t world = options_.rank.world_size;
  const std::uint64_t rank = options_.rank.rank;
  // Dealt evenly: the first `longer` ranks get one more than the others. A
  // whole step divides, so there `longer` is 0.
  const std::uint64_t share = length / world;
  const std::uint64_t longer = length % world;
  const std::uint64_t first = begin + rank * share + std::min(rank, longer);
  return {first, first + share + (rank < longer ? 1 : 0)};
}

std::uint64_t Steps::position_after(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  if (ends_ != nullptr) return (*ends_)[first_ + step];
  return std::min(options_.samples,
                  options_.start + (step + 1) * options_.global_batch);
}

}  // namespace leat
