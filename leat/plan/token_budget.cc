// Bucket by bucket, from short to long. Samples that are left over go up: a
// longer bucket's bound holds for them too, a shorter one's would not.
//
// If padding counts, many of them would fill several steps there, with few
// tokens. They make a step of their own then, whose micro-batches are smaller.

#include "leat/plan/token_budget.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/plan/packing.h"
#include "leat/plan/permutation.h"

namespace leat {
namespace {

constexpr std::uint64_t kMostOfABudget = 0x7fffffff;
/// Keeps the order of micro-batches apart from that of steps.
constexpr std::uint64_t kBinsStream = std::uint64_t{1} << 63;

using Samples = std::vector<std::uint32_t>;
using Step = std::vector<Samples>;  ///< Its micro-batches.

/// An empty sample takes room too, so that a micro-batch has an end.
std::uint64_t room_of(std::uint64_t length) {
  return std::max<std::uint64_t>(length, 1);
}

Result<void> check(const MeasuredSamples& window,
                   const TokenBudgetOptions& options) {
  if (options.max_tokens == 0 || options.max_tokens > kMostOfABudget) {
    return invalid("a budget of {} tokens; it is 1 to {}", options.max_tokens,
                   kMostOfABudget);
  }
  if (options.micro_batches == 0 || options.micro_batches > kMostOfABudget) {
    return invalid("a step of {} micro-batches; it has 1 to {}",
                   options.micro_batches, kMostOfABudget);
  }
  if (window.lengths.size() > kMostOfABudget) {
    return invalid("{} samples in a window; it has at most {}",
                   window.lengths.size(), kMostOfABudget);
  }
  if (!window.buckets.empty() &&
      window.buckets.size() != window.lengths.size()) {
    return invalid("buckets of {} samples, and lengths of {}",
                   window.buckets.size(), window.lengths.size());
  }
  const auto longer = std::ranges::find_if(
      window.lengths, [&](auto length) { return length > options.max_tokens; });
  if (longer == window.lengths.end()) return {};
  return invalid(
      "sample {} of the window has {} tokens, and a micro-batch at most {}",
      longer - window.lengths.begin(), *longer, options.max_tokens);
}

class BudgetFilling {
 public:
  BudgetFilling(const MeasuredSamples& window,
                const TokenBudgetOptions& options)
      : window_(window), options_(options) {}

  Result<BudgetedSteps> run() {
    const auto buckets = by_bucket();
    for (auto it = buckets.begin(); it != buckets.end(); ++it) {
      left_.insert(left_.end(), it->second.begin(), it->second.end());
      if (options_.count == TokenCount::kPadded) {
        const auto next = std::next(it);
        fill_evenly(next == buckets.end() ? Samples() : next->second);
      } else {
        LEAT_TRY_VOID(fill(it->first));
      }
    }
    return in_order(end());
  }

 private:
  std::map<std::uint16_t, Samples> by_bucket() const {
    std::map<std::uint16_t, Samples> found;
    for (std::uint32_t i = 0; i < window_.lengths.size(); ++i) {
      found[window_.buckets.empty() ? 0 : window_.buckets[i]].push_back(i);
    }
    return found;
  }

  /// Takes whole steps from what is left, by the sums of lengths.
  Result<void> fill(std::uint16_t bucket) {
    LEAT_TRY(Step bins, best_fit());
    const std::size_t each = options_.micro_batches;
    const std::size_t whole = bins.size() / each * each;
    left_bins_.assign(bins.begin() + static_cast<std::ptrdiff_t>(whole),
                      bins.end());
    bins.resize(whole);
    if (options_.shuffles) {
      // Those with long samples close early: mixed, they come alike.
      mix(bins, kBinsStream + (std::uint64_t{bucket} << 40) + options_.stream);
    }
    for (std::size_t i = 0; i < whole; i += each) {
      const auto begin = std::make_move_iterator(bins.begin()) +
                         static_cast<std::ptrdiff_t>(i);
      steps_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(each));
    }
    left_.clear();
    for (const Samples& bin : left_bins_) {
      left_.insert(left_.end(), bin.begin(), bin.end());
    }
    std::ranges::sort(left_);  // As they came.
    return {};
  }

  /// Takes steps from what is left, in micro-batches of equally many samples,
  /// as they come. `next` has the samples of the next bucket; empty: none.
  void fill_evenly(const Samples& next) {
    std::size_t begin = 0;
    for (const std::size_t size : even_steps(next)) {
      steps_.push_back(cut(std::span(left_).subspan(begin, size)));
      begin += size;
    }
    left_.erase(left_.begin(),
                left_.begin() + static_cast<std::ptrdiff_t>(begin));
    // The next window has more of their bucket.
    if (!options_.is_last) left_.clear();
  }

  /// The samples of each step; the rest joins the next bucket.
  std::vector<std::size_t> even_steps(const Samples& next) const {
    const std::size_t each = options_.micro_batches;
    const std::uint64_t most = most_together(left_);
    const std::size_t step = most * each;
    const std::size_t rest = left_.size() % step;
    std::vector<std::size_t> sizes(left_.size() / step, step);
    if (rest == 0 || !options_.is_last) return sizes;
    const bool is_little =
        !next.empty() && rest < std::min(most, most_together(next)) * each;
    if (is_little) return sizes;
    if (!sizes.empty() && step + rest >= 2 * each) {
      // Two steps that are not full, rather than one that is nearly empty: few
      // samples are hard to balance.
      const std::size_t half = ((step + rest + 1) / 2 + each - 1) / each * each;
      sizes.back() = std::min(half, step + rest - each);
      sizes.push_back(step + rest - sizes.back());
    } else if (rest >= each) {
      sizes.push_back(rest);
    }
    return sizes;
  }

  /// How many samples a micro-batch has, for the longest of these.
  std::uint64_t most_together(const Samples& samples) const {
    std::uint64_t longest = 1;
    for (const std::uint32_t i : samples) {
      longest = std::max(longest, room_of(window_.lengths[i]));
    }
    const std::uint64_t most = options_.max_tokens / longest;
    if (options_.max_samples == 0) return most;
    return std::min<std::uint64_t>(most, options_.max_samples);
  }

  /// Cuts a step into micro-batches of equally many samples; the first
  /// may have one more.
  Step cut(std::span<const std::uint32_t> samples) const {
    const std::size_t each = options_.micro_batches;
    Step bins;
    bins.reserve(each);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t longer = i < samples.size() % each ? 1 : 0;
      const auto bin = samples.subspan(begin, samples.size() / each + longer);
      bins.emplace_back(bin.begin(), bin.end());
      begin += bin.size();
    }
    return bins;
  }

  Result<Step> best_fit() const {
    std::vector<std::uint64_t> rooms;
    rooms.reserve(left_.size());
    for (const std::uint32_t i : left_) {
      rooms.push_back(room_of(window_.lengths[i]));
    }
    LEAT_TRY(const PackedRows rows,
             pack(rooms,
                  {.capacity = static_cast<std::uint32_t>(options_.max_tokens),
                   .max_sequences = options_.max_samples,
                   .long_documents = LongDocuments::kRefuse}));
    Step bins(rows.rows());
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      for (const PackPiece& piece : rows.row(row)) {
        bins[row].push_back(left_[piece.sample]);
      }
    }
    return bins;
  }

  /// The last step, if what is left makes no whole one.
  Step end() {
    const std::size_t each = options_.micro_batches;
    if (left_.empty() || !options_.is_last) return {};
    if (left_.size() < each) {
      borrow(each - left_.size());
      left_bins_.clear();
      for (const std::uint32_t sample : left_) left_bins_.push_back({sample});
    }
    if (left_.size() < each) return std::move(left_bins_);
    halve(left_bins_, each);
    steps_.push_back(std::move(left_bins_));
    return {};
  }

  /// Takes single samples from micro-batches that have several.
  void borrow(std::size_t wanted) {
    for (auto step = steps_.rbegin(); step != steps_.rend() && wanted > 0;
         ++step) {
      bool has_more = true;
      while (has_more && wanted > 0) {
        has_more = false;
        for (Samples& bin : *step) {
          if (wanted == 0 || bin.size() < 2) continue;
          left_.push_back(bin.back());
          bin.pop_back();
          --wanted;
          has_more = true;
        }
      }
    }
  }

  /// Divides the largest bins until there are `wanted`. REQUIRES: they have at
  /// least as many samples.
  static void halve(Step& bins, std::size_t wanted) {
    while (bins.size() < wanted) {
      Samples& largest = *std::ranges::max_element(
          bins, {}, [](const Samples& bin) { return bin.size(); });
      const auto half = static_cast<std::ptrdiff_t>(largest.size() / 2);
      Samples part(largest.begin() + half, largest.end());
      largest.resize(largest.size() / 2);
      bins.push_back(std::move(part));
    }
  }

  template <class T>
  void mix(std::vector<T>& things, std::uint64_t stream) const {
    if (things.empty()) return;
    const Permutation order(things.size(), options_.seed, stream);
    std::vector<T> mixed;
    mixed.reserve(things.size());
    for (std::uint64_t i = 0; i < things.size(); ++i) {
      mixed.push_back(std::move(things[order.at(i)]));
    }
    things = std::move(mixed);
  }

  BudgetedSteps in_order(Step last) {
    if (options_.shuffles) mix(steps_, options_.stream);
    if (!last.empty()) steps_.push_back(std::move(last));
    BudgetedSteps made;
    made.samples.reserve(window_.lengths.size());
    for (const Step& step : steps_) {
      for (const Samples& bin : step) {
        made.samples.insert(made.samples.end(), bin.begin(), bin.end());
        made.ends.push_back(made.samples.size());
      }
    }
    return made;
  }

  const MeasuredSamples& window_;
  const TokenBudgetOptions& options_;
  Samples left_;    ///< In no step yet,
  Step left_bins_;  ///< and as micro-batches.
  std::vector<Step> steps_;
};

}  // namespace

Result<BudgetedSteps> fill_steps(const MeasuredSamples& window,
                                 const TokenBudgetOptions& options) {
  LEAT_TRY_VOID(check(window, options));
  return BudgetFilling(window, options).run();
}

}  // namespace leat
