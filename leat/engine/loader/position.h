// A loader's place in its epochs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/error.h"

namespace leat {

/// The place of a batch in its epoch: the position before it.
struct BatchPlace {
  std::uint64_t iteration = 0;  ///< 0: no batch was taken.
  std::uint64_t epoch = 0;
  std::uint64_t at = 0;
  std::vector<std::uint64_t> left_behind = {};
  bool has_delivered = false;
  bool is_resuming = false;
};

/// The delivered position, and the state of the epoch that it is in.
///
/// Threads: one at a time: the loader's lock.
struct Position {
  /// The iterator that may continue; earlier ones have ended.
  std::uint64_t iteration = 0;
  /// begin() starts at `at` in this epoch; state() saves both.
  std::uint64_t epoch = 0;
  std::uint64_t at = 0;  ///< Samples of the epoch delivered, over all ranks.
  /// Positions before it that were skipped: see LoaderState.
  std::vector<std::uint64_t> left_behind = {};
  /// Digest of the order that a state was made with, in `epoch`; empty: none.
  std::string resumed_order = {};
  /// The global batch of that state.
  std::uint64_t resumed_batch = 0;
  bool has_delivered = false;
  bool has_ended = false;
  /// True from load_state() until a batch is delivered.
  bool is_resuming = false;
  std::optional<Error> failure = std::nullopt;

  bool is_within_epoch() const { return has_delivered && !has_ended; }

  /// Iterators that are still alive belong to the old position.
  void jump_to(std::uint64_t to_epoch, std::uint64_t to_position) {
    if (to_epoch != epoch || to_position != at) forget_order();
    epoch = to_epoch;
    at = to_position;
    has_delivered = false;
    has_ended = false;
    failure.reset();
    ++iteration;
  }

  BatchPlace place() const {
    return {.iteration = iteration,
            .epoch = epoch,
            .at = at,
            .left_behind = left_behind,
            .has_delivered = has_delivered,
            .is_resuming = is_resuming};
  }

  /// False, and nothing is done: another iteration has begun, or the position
  /// is not behind that place.
  bool go_back_to(const BatchPlace& place) {
    const bool is_behind =
        place.epoch < epoch || (place.epoch == epoch && place.at < at);
    if (place.iteration != iteration || !is_behind) return false;
    epoch = place.epoch;
    at = place.at;
    left_behind = place.left_behind;
    has_delivered = place.has_delivered;
    is_resuming = place.is_resuming;
    has_ended = false;
    return true;
  }

  void deliver(std::uint64_t position_after,
               std::vector<std::uint64_t> passed_over) {
    has_delivered = true;
    is_resuming = false;
    at = position_after;
    left_behind = std::move(passed_over);
  }

  void end_epoch(std::uint64_t next_epoch) {
    has_ended = true;
    is_resuming = false;
    epoch = next_epoch;
    at = 0;
    forget_order();
  }

  void forget_order() {
    left_behind.clear();
    resumed_order.clear();
  }
};

}  // namespace leat
