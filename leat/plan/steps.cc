#include "leat/plan/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

Result<void> check_rank(const Rank& rank) {
  if (rank.world_size == 0) {
    return invalid(
        "world_size is 0: it counts this process too, so it is at least 1");
  }
  if (rank.rank >= rank.world_size) {
    return invalid("rank {} is not below world_size {}: ranks count from 0",
                   rank.rank, rank.world_size);
  }
  return {};
}

Result<void> check_batch(std::uint64_t global_batch, std::uint64_t world) {
  if (global_batch == 0) {
    return invalid(
        "the global batch is 0: it must hold at least one sample of each rank");
  }
  if (global_batch > Steps::kMax) {
    return invalid("a global batch of {} is past 2^48", global_batch);
  }
  if (global_batch % world != 0) {
    const std::uint64_t below = global_batch - global_batch % world;
    return invalid(
        "a global batch of {} does not divide among {} ranks: take {}",
        global_batch, world,
        below == 0 ? fmt::format("{}", world)
                   : fmt::format("{} or {}", below, below + world));
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
    return invalid("{} samples are past 2^48", options.samples);
  }
  if (options.start > options.samples) {
    return invalid(
        "position {} is past the end of the epoch, which has {} samples: the "
        "state is of another dataset",
        options.start, options.samples);
  }
  Steps steps(options, rows);
  if (has_rows) {
    LEAT_TRY_VOID(steps.begin_in_rows());
    return steps;
  }
  if (options.tail == Tail::kDrop && options.samples > 0 &&
      options.samples < options.global_batch) {
    return invalid(
        "dropping the last incomplete step would leave nothing: the epoch has "
        "{} samples, a step {}; take drop_last=False or a smaller batch",
        options.samples, options.global_batch);
  }
  return steps;
}

Result<void> Steps::begin_in_rows() {
  const std::vector<std::uint64_t>& ends = *rows_.ends;
  const auto after = std::ranges::upper_bound(ends, options_.start);
  first_row_ = static_cast<std::uint64_t>(after - ends.begin());
  if (options_.tail == Tail::kDrop && !ends.empty() &&
      ends.size() < rows_.of_a_step) {
    return invalid(
        "dropping the last incomplete step would leave nothing: the epoch has "
        "{} rows, a step {}; take drop_last=False or a smaller batch",
        ends.size(), rows_.of_a_step);
  }
  if (first_row_ != 0 && ends[first_row_ - 1] != options_.start) {
    return invalid("position {} is within a step: steps are not as they were",
                   options_.start);
  }
  return check_dealt();
}

Result<void> Steps::check_dealt() const {
  if (rows_.dealt == nullptr) return {};
  if (rows_.dealt->ranks != options_.rank.world_size) {
    return invalid("steps are dealt to {} ranks, and there are {}",
                   rows_.dealt->ranks, options_.rank.world_size);
  }
  for (std::uint64_t step = 0; step < count(); ++step) {
    const StepSlice all = all_ranks(step);
    const auto found = rows_.dealt->step_at(all.begin);
    const auto next = rows_.dealt->step_at(all.end);
    if (found && next && *next == *found + 1) continue;
    return invalid(
        "no step from position {} to {} is dealt: iter() deals the steps that "
        "are left",
        all.begin, all.end);
  }
  return {};
}

Result<void> DealtSteps::check() const {
  const auto refuse = [](std::uint64_t step) {
    return invalid("step {} is dealt without its own samples, each once", step);
  };
  if (ranks == 0 || ends.size() % ranks != 0) return refuse(0);
  std::vector<bool> is_dealt(positions.size());
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::uint64_t step = i / ranks;
    const std::uint64_t from = i == 0 ? first : ends[i - 1];
    if (ends[i] < from || ends[i] - first > positions.size()) {
      return refuse(step);
    }
    if ((i + 1) % ranks != 0) continue;
    const std::uint64_t end = ends[i] - first;
    for (std::uint64_t entry = begin; entry < end; ++entry) {
      const std::uint64_t at = positions[entry] - first;
      if (positions[entry] < first + begin || at >= end || is_dealt[at]) {
        return refuse(step);
      }
      is_dealt[at] = true;
    }
    begin = end;
  }
  return begin == positions.size() ? Result<void>()
                                   : refuse(ends.size() / ranks);
}

std::optional<std::uint64_t> DealtSteps::step_at(std::uint64_t position) const {
  if (position == first) return 0;
  const std::size_t steps = ends.size() / ranks;
  std::size_t low = 0;
  std::size_t high = steps;
  while (low < high) {  // The first step that ends at the position or later.
    const std::size_t middle = (low + high) / 2;
    if (ends[(middle + 1) * ranks - 1] < position) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == steps || ends[(low + 1) * ranks - 1] != position) {
    return std::nullopt;
  }
  return low + 1;
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
  if (rows_.dealt != nullptr) {
    const DealtSteps& dealt = *rows_.dealt;
    const std::uint64_t number = *dealt.step_at(all_ranks(step).begin);
    std::uint64_t before = all_ranks(step).begin;
    for (std::uint32_t rank = 0; rank < dealt.ranks; ++rank) {
      const std::uint64_t end = dealt.ends[number * dealt.ranks + rank];
      if (std::exchange(before, end) == end) return false;
    }
    return true;
  }
  const StepSlice all = has_rows() ? rows_of(step) : all_ranks(step);
  return all.size() >= options_.rank.world_size;
}

StepSlice Steps::entries(std::uint64_t step) const {
  const DealtSteps& dealt = *rows_.dealt;
  const std::uint64_t begin = all_ranks(step).begin;
  const std::uint64_t mine =
      *dealt.step_at(begin) * dealt.ranks + options_.rank.rank;
  return {options_.rank.rank == 0 ? begin : dealt.ends[mine - 1],
          dealt.ends[mine]};
}

std::uint64_t Steps::size(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  return rows_.dealt == nullptr ? slice(step).size() : entries(step).size();
}

std::vector<std::uint64_t> Steps::positions(std::uint64_t step) const {
  LEAT_CHECK(step < count());
  if (rows_.dealt == nullptr) {
    const StepSlice run = slice(step);
    std::vector<std::uint64_t> positions(run.size());
    std::iota(positions.begin(), positions.end(), run.begin);
    return positions;
  }
  const StepSlice mine = entries(step);
  const auto part = std::span(rows_.dealt->positions)
                        .subspan(mine.begin - rows_.dealt->first, mine.size());
  return {part.begin(), part.end()};
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
