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

Result<Steps> Steps::make(const StepOptions& options, const StepRows& rows) {
  LEAT_TRY_VOID(check_rank(options.rank));
  const bool has_rows = rows.ends != nullptr;
  LEAT_TRY_VOID(check_batch(has_rows ? rows.of_a_step : options.global_batch,
                            options.rank.world_size));
  if (options.samples > kMax) {
    return invalid(fmt::format("{} samples are past 2^48", options.samples));
  }
  if (options.start > options.samples) {
    return invalid(fmt::format(
        "position {} is past the end of the epoch, which has {} samples: the "
        "state is of another dataset",
        options.start, options.samples));
  }
  Steps steps(options, rows);
  if (has_rows) {
    LEAT_TRY_VOID(steps.begin_in_rows());
    return steps;
  }
  if (options.tail == Tail::kDrop && options.samples > 0 &&
      options.samples < options.global_batch) {
    return invalid(fmt::format(
        "dropping the last incomplete step would leave nothing: the epoch has "
        "{} samples, a step {}; take drop_last=False or a smaller batch",
        options.samples, options.global_batch));
  }
  return steps;
}

Result<void> Steps::begin_in_rows() {
  const std::vector<std::uint64_t>& ends = *rows_.ends;
  const auto after = std::ranges::upper_bound(ends, options_.start);
  first_row_ = static_cast<std::uint64_t>(after - ends.begin());
  if (options_.tail == Tail::kDrop && !ends.empty() &&
      ends.size() < rows_.of_a_step) {
    return invalid(fmt::format(
        "dropping the last incomplete step would leave nothing: the epoch has "
        "{} rows, a step {}; take drop_last=False or a smaller batch",
        ends.size(), rows_.of_a_step));
  }
  if (first_row_ == 0 || ends[first_row_ - 1] == options_.start) return {};
  return invalid(
      fmt::format("position {} is within a step: steps are not as they were",
                  options_.start));
}

std::uint64_t Steps::count() const {
  const std::uint64_t rest = has_rows() ? rows_.ends->size() - first_row_
                                        : options_.samples - options_.start;
  const std::uint64_t each =
      has_rows() ? rows_.of_a_step : options_.global_batch;
  const bool has_tail = rest % each != 0;
  return rest / each + (has_tail && options_.tail != Tail::kDrop ? 1 : 0);
}

StepSlice Steps::rows_of(std::uint64_t step) const {
  const std::uint64_t begin = first_row_ + step * rows_.of_a_step;
  return {begin,
          std::min<std::uint64_t>(begin + rows_.of_a_step, rows_.ends->size())};
}

StepSlice Steps::all_ranks(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  if (has_rows()) {
    const StepSlice rows = rows_of(step);
    return {begin_of(rows.begin), begin_of(rows.end)};
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
  if (!has_rows()) {
    return (position - options_.start) / options_.global_batch;
  }
  const auto after = std::ranges::upper_bound(*rows_.ends, position);
  const auto row = static_cast<std::uint64_t>(after - rows_.ends->begin());
  return (row - first_row_) / rows_.of_a_step;
}

bool Steps::is_whole(std::uint64_t step) const {
  if (has_rows()) return rows_of(step).size() == rows_.of_a_step;
  return options_.samples - all_ranks(step).begin >= options_.global_batch;
}

bool Steps::has_some_for_all(std::uint64_t step) const {
  const StepSlice all = has_rows() ? rows_of(step) : all_ranks(step);
  return all.size() >= options_.rank.world_size;
}

StepSlice Steps::slice(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  const StepSlice all = has_rows() ? rows_of(step) : all_ranks(step);
  const std::uint64_t world = options_.rank.world_size;
  const std::uint64_t rank = options_.rank.rank;
  // Dealt evenly: the first `longer` ranks get one more than the others. A
  // whole step divides, so there `longer` is 0.
  const std::uint64_t share = all.size() / world;
  const std::uint64_t longer = all.size() % world;
  const std::uint64_t first = all.begin + rank * share + std::min(rank, longer);
  const std::uint64_t end = first + share + (rank < longer ? 1 : 0);
  if (has_rows()) return {begin_of(first), begin_of(end)};
  return {first, end};
}

std::uint64_t Steps::position_after(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  if (has_rows()) return begin_of(rows_of(step).end);
  return std::min(options_.samples,
                  options_.start + (step + 1) * options_.global_batch);
}

}  // namespace leat
