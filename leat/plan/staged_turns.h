// Turns of sources whose weights change on the way.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "leat/plan/interleave.h"

namespace leat {

/// Stages of turns, one after another; the last one has no end.
///
/// Threads: any, once all stages are there.
class StagedTurns {
 public:
  using Turn = Interleave::Turn;

  /// A stage that begins with the turn `first`. REQUIRES: later than those
  /// before, the first one 0; as many sources as they have.
  void add(std::uint64_t first, std::shared_ptr<const Interleave> turns);

  /// Like those of Interleave. REQUIRES: there is a stage.
  Turn at(std::uint64_t position) const;
  std::uint64_t turns_before(std::uint32_t source,
                             std::uint64_t position) const;
  /// Nullopt if it never comes.
  std::optional<std::uint64_t> position_of(Turn turn) const;
  /// Positions between which it comes, as cheaply as they are known: from
  /// `least` to below `end`. Nullopt if it never comes.
  struct Bounds {
    std::uint64_t least = 0;
    std::uint64_t end = 0;
  };
  std::optional<Bounds> bounds_of(Turn turn) const;

 private:
  struct Stage {
    std::uint64_t first = 0;
    std::vector<std::uint64_t> had;  ///< By source: its turns before.
    std::shared_ptr<const Interleave> turns;
  };
  const Stage& stage_at(std::uint64_t position) const;
  const Stage& stage_of(Turn turn) const;

  std::vector<Stage> stages_;
};

}  // namespace leat
