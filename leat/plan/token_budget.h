// Decides which samples share a micro-batch that a budget of tokens bounds.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The tokens of a micro-batch.
enum class TokenCount : std::uint8_t {
  kSum,     ///< The sum of its lengths.
  kPadded,  ///< Its samples, times the longest sample of their bucket.
};

struct TokenBudgetOptions {
  std::uint64_t max_tokens = 0;  ///< A micro-batch's: 1 to 2^31 - 1.
  TokenCount count = TokenCount::kSum;
  std::uint32_t max_samples = 0;    ///< A micro-batch's; 0: as many as fit.
  std::uint64_t micro_batches = 1;  ///< A step's, over all ranks.
  /// Whether the epoch ends with the window. Else samples that fill no step are
  /// in none: they come first in the next window.
  bool is_last = true;
  /// The order of steps, and of micro-batches within a bucket, is drawn from
  /// both numbers.
  bool shuffles = true;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

/// A window of samples, in the order in which they come. Both have one entry a
/// sample.
struct MeasuredSamples {
  std::span<const std::uint64_t> lengths;
  /// Its bucket, counted from 0 on; longer samples have higher ones. Empty: one
  /// bucket.
  std::span<const std::uint16_t> buckets;
};

/// Micro-batches in steps.
struct BudgetedSteps {
  std::vector<std::uint32_t> samples;  ///< By place in the window.
  /// The end of each micro-batch in `samples`. The options' number of them make
  /// a step; the last step is short only if so few samples are left that some
  /// of its micro-batches would be empty.
  std::vector<std::uint64_t> ends;
};

/// Puts the samples of a window into micro-batches of at most `max_tokens`, and
/// those into steps; each sample comes once, in the last window.
///
/// All micro-batches of a step are of one bucket, so that padding is bounded if
/// a rank joins several of them. Samples of a bucket that do not fill a step
/// join the next bucket. Those left at the end fill a step of smaller
/// micro-batches, if need be with samples from others: so all steps are whole,
/// unless the window has fewer samples than a step has micro-batches.
///
/// If padding counts, all micro-batches of a step have equally many samples, or
/// one more. Samples that would take a step or more of the next bucket make one
/// of their own; so do those left at the end. It shares its samples with the
/// step before it. A window that is not the last keeps all of them for the
/// next.
///
/// The steps depend on the arguments alone, so ranks agree without messages.
///
/// Threads: any. Takes O(n log n) time.
/// Errors:
///   kInvalidArgument  a sample longer than `max_tokens`, named by its place;
///   an
///                     option out of range; more than 2^31 - 1 samples
Result<BudgetedSteps> fill_steps(const MeasuredSamples& window,
                                 const TokenBudgetOptions& options);

}  // namespace leat
