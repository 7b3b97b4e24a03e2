// Decides which positions of an epoch each rank gets in each step.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// The treatment of the samples after the last whole step.
enum class Tail : std::uint8_t {
  kDrop,  ///< They are left out of this epoch.
  kKeep,  ///< One more step, dealt evenly: each sample once over all ranks.
  kPad,   ///< One more step, filled up with the epoch's first positions.
};

/// Consecutive ranks: one, those of a node, or (the default) all.
struct RankRun {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  std::uint32_t world_size = 1;
};

struct StepOptions {
  std::uint64_t samples = 0;       ///< Samples of the whole epoch: N.
  std::uint64_t start = 0;         ///< Positions already delivered: s.
  std::uint64_t global_batch = 0;  ///< G, over all ranks.
  Rank rank = {};
  Tail tail = Tail::kKeep;
};

/// Steps whose samples go to ranks in other parts than runs: each step keeps
/// its samples.
struct DealtSteps {
  std::uint32_t ranks = 1;
  std::uint64_t first = 0;  ///< The position at which they begin.
  /// Step by step, and in it rank by rank: entry i is of the step that has
  /// position `first + i`.
  std::vector<std::uint64_t> positions = {};
  /// The end of each rank in each step: behind its last entry, counted from
  /// `first` as entries are.
  std::vector<std::uint64_t> ends = {};

  /// Errors: kInvalidArgument: a step without its own samples, each once
  Result<void> check() const;
  /// The number of the step that begins at a position; nullopt: none does.
  std::optional<std::uint64_t> step_at(std::uint64_t position) const;
};

/// Rows of unequal size that take the place of samples: an epoch is cut into
/// rows, and a step has a number of them.
struct StepRows {
  /// The end position of each row of the whole epoch, ascending, the last of
  /// them N. Null: a row is a sample.
  std::shared_ptr<const std::vector<std::uint64_t>> ends = nullptr;
  std::uint64_t of_a_step = 1;  ///< Over all ranks.
  /// How ranks divide steps from some position on; null: in runs.
  std::shared_ptr<const DealtSteps> dealt = nullptr;
};

/// A run of positions. Positions at or past `samples` (padding only) stand for
/// position modulo `samples` and are not valid.
struct StepSlice {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const StepSlice&, const StepSlice&) = default;
};

/// The steps that remain of an epoch: step k covers positions [s + k·G, s + (k
/// + 1)·G), and rank r of W takes the r-th run of G / W.
///
/// Threads: any; it never changes.
class Steps {
 public:
  /// The most samples, and the largest global batch.
  static constexpr std::uint64_t kMax = std::uint64_t{1} << 48;

  /// With rows, the global batch has no meaning, and a tail cannot be padded.
  ///
  /// Errors:
  ///   kInvalidArgument  G is 0 or not a multiple of W, rank >= W, start past
  ///                     the end, N or G above kMax, or a tail that is dropped
  ///                     is the whole epoch; each says what to change; rows of
  ///                     a step that do not divide among the ranks, or a start
  ///                     that is the end of none, or of no dealt step; steps
  ///                     that are dealt to another number of ranks
  static Result<Steps> make(const StepOptions& options,
                            const StepRows& rows = {});

  std::uint64_t count() const;
  /// The positions of this rank in `step`, as dealt. REQUIRES: step < count().
  std::vector<std::uint64_t> positions(std::uint64_t step) const;
  /// How many they are. REQUIRES: step < count().
  std::uint64_t size(std::uint64_t step) const;
  /// The same, if steps are dealt in runs. REQUIRES: step < count().
  StepSlice slice(std::uint64_t step) const;
  /// The positions of all ranks together in `step`. REQUIRES: step < count().
  StepSlice all_ranks(std::uint64_t step) const;
  /// The step that a position is in. REQUIRES: start <= position <
  /// position_after(count() - 1).
  std::uint64_t step_of(std::uint64_t position) const;
  /// True if `step` has a full global batch of samples: neither cut short nor
  /// padded. REQUIRES: step < count().
  bool is_whole(std::uint64_t step) const;
  /// Whether each rank gets something of `step`. REQUIRES: step < count().
  bool has_some_for_all(std::uint64_t step) const;
  Rank rank() const { return options_.rank; }
  /// The delivered position after `step`: at most `samples`, the same on all
  /// ranks. REQUIRES: step < count().
  std::uint64_t position_after(std::uint64_t step) const;

 private:
  Steps(const StepOptions& options, StepRows rows)
      : options_(options), rows_(std::move(rows)) {}
  Result<void> begin_in_rows();
  Result<void> check_dealt() const;
  /// The part of a dealt step that is this rank's, counted as entries are.
  StepSlice entries(std::uint64_t step) const;
  bool has_rows() const { return rows_.ends != nullptr; }
  /// The rows of a step, of all ranks.
  StepSlice rows_of(std::uint64_t step) const;
  /// The first position of a row, or the end of the last one.
  std::uint64_t begin_of(std::uint64_t row) const {
    return row == first_row_ ? options_.start : (*rows_.ends)[row - 1];
  }

  StepOptions options_;
  StepRows rows_;
  std::uint64_t first_row_ = 0;  ///< That is left.
};

}  // namespace leat
