// Finds the run that a number lies in, where runs are of like length.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace leat {

/// An index over runs that lie one after another: it looks up any number in a
/// few steps, where a binary search waits for as many places of memory as the
/// number of runs has bits. Takes 4 to 8 bytes a run.
///
/// Threads: any; it never changes.
class RunFinder {
 public:
  RunFinder() = default;
  /// `starts` has the first number of each run, rising from 0, and the end of
  /// the last one. REQUIRES: not empty, at most 2^32 entries.
  explicit RunFinder(std::span<const std::uint64_t> starts);

  /// The run of a number: the last that begins there or before. REQUIRES: the
  /// same starts; number < starts.back().
  std::uint64_t find(std::uint64_t number,
                     std::span<const std::uint64_t> starts) const {
    const std::uint64_t entry = number >> shift_;
    std::uint64_t run = run_at_[entry];
    const std::uint64_t last = run_at_[entry + 1];
    if (last - run > kFew) return search(number, starts, run, last);
    // No branches, since none could be foretold. The last run ends later.
    run += starts[run + 1] <= number ? 1 : 0;
    run += starts[run + 1] <= number ? 1 : 0;
    return run;
  }

 private:
  static constexpr std::uint64_t kFew = 2;

  /// Among runs that are far shorter than the others.
  static std::uint64_t search(std::uint64_t number,
                              std::span<const std::uint64_t> starts,
                              std::uint64_t first, std::uint64_t last);

  int shift_ = 0;
  /// By number >> shift_, and one more: the run of the first such number.
  std::vector<std::uint32_t> run_at_;
};

}  // namespace leat
