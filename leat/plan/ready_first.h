// The positions of a rank, those with available samples first.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "leat/base/result.h"
#include "leat/plan/steps.h"

namespace leat {

/// Deals the positions of one rank to its steps so that, within a window, ready
/// ones come first, and each kind keeps its order. The window begins at the
/// first position that was not dealt and has `window` positions, or a step's if
/// that is more, so no position is overtaken by more. Every step keeps its
/// size, and all steps together keep their positions: so an epoch stays a
/// permutation of each rank's own positions.
///
/// The positions that were skipped and not dealt yet are `left_behind`. With
/// the position of the step, a later run needs nothing else to continue.
///
/// Pure. Threads: one at a time.
class ReadyFirst {
 public:
  /// `left_behind`: positions that replace as many of the first ones of
  /// `steps`.
  ///
  /// Errors:
  ///   kInvalidArgument  they do not ascend, or one of them would be dealt
  ///                     twice: the state is damaged, or of another rank
  static Result<ReadyFirst> make(const Steps& steps, std::uint64_t samples,
                                 std::uint64_t window,
                                 const std::vector<std::uint64_t>& left_behind);

  using Is = std::function<bool(std::uint64_t position)>;
  /// The positions of the next step; padding, at or past `samples`, stays where
  /// it is. Among those that are not ready, the ones that another job makes
  /// ready come last: they will be ready by the next step. Calls each function
  /// at most once for each position of the window. REQUIRES: steps are left.
  std::vector<std::uint64_t> next_step(const Is& is_ready, const Is& is_coming);

  /// After the steps dealt so far: ascending, before those not examined. Empty
  /// once all dealt positions are before all others.
  std::vector<std::uint64_t> left_behind() const;

 private:
  ReadyFirst(const Steps& steps, std::uint64_t samples, std::uint64_t window)
      : steps_(steps), samples_(samples), window_(window) {}
  std::uint64_t samples_in(std::uint64_t step) const;
  bool pull();
  std::uint64_t reach(std::uint64_t needed) const;

  Steps steps_;
  std::uint64_t samples_;
  std::uint64_t window_;
  std::uint64_t step_ = 0;  ///< The step dealt next.
  // The place of the position that enters the window next.
  std::uint64_t pulled_step_ = 0;
  std::uint64_t pulled_row_ = 0;
  struct Waiting {
    std::uint64_t position = 0;
    std::uint64_t number = 0;  ///< Numbers those that entered the pool.
  };
  std::deque<Waiting> pool_;  ///< In order.
  std::uint64_t pulled_ = 0;
  /// The pool's positions before a dealt one.
  std::size_t passed_ = 0;
};

}  // namespace leat
