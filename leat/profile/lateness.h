// Which rank the others wait for, and why.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat {

/// Steps of one rank, in order.
struct RankSteps {
  double seconds = 0;         ///< That all of them took.
  std::vector<double> waits;  ///< Seconds in next(), for each step.
  /// The largest cause of each wait: "storage", "decode", …
  std::vector<std::string> causes;
  /// Seconds of its own work between next() and the exchange of gradients;
  /// empty where nobody measures it.
  std::vector<double> own;
};

/// The rank that makes the others wait.
struct LateRank {
  std::uint32_t rank = 0;
  std::string cause;  ///< As RankSteps has it, or "compute".
  /// The share of all time that the others would be spared.
  double fraction = 0;
};

/// Sums up which rank came last, over steps that end together on all ranks.
///
/// A rank is ready to exchange gradients once it has waited for its batch and
/// done its own work; the last one makes all others wait, which to them looks
/// like slow communication (Stash, ICDCS 2023, has no way to tell). The time
/// lost is what it took beyond the median of the others; the cause is whichever
/// of the two, wait or work, is further beyond theirs. Without `own` of all
/// ranks, work counts as equal and only waits are told apart.
///
/// Pure. Threads: one at a time.
class Lateness {
 public:
  /// The same steps of all ranks, rank 0 first; steps that some rank has not
  /// are left out. REQUIRES: causes and, unless empty, own as long as waits.
  void add(std::span<const RankSteps> ranks);

  std::uint64_t steps() const { return steps_; }

  /// nullopt if no rank is late by 2 % of the time, or none more than twice as
  /// much as any other: then it is chance, not a rank.
  std::optional<LateRank> worst() const;

 private:
  std::uint64_t steps_ = 0;
  double seconds_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, double> lost_;
};

}  // namespace leat
