#include "leat/plan/staged_turns.h"

#include <algorithm>
#include <utility>

#include "leat/base/check.h"

namespace leat {

void StagedTurns::add(std::uint64_t first,
                      std::shared_ptr<const Interleave> turns) {
  LEAT_CHECK(stages_.empty() ? first == 0 : first > stages_.back().first);
  std::vector<std::uint64_t> had(turns->sources());
  if (!stages_.empty()) {
    for (std::uint32_t source = 0; source < had.size(); ++source) {
      had[source] = turns_before(source, first);
    }
  }
  stages_.push_back({first, std::move(had), std::move(turns)});
}

const StagedTurns::Stage& StagedTurns::stage_at(std::uint64_t position) const {
  if (stages_.size() == 1) return stages_.front();
  return *(std::ranges::upper_bound(stages_, position, {}, &Stage::first) - 1);
}

StagedTurns::Turn StagedTurns::at(std::uint64_t position) const {
  const Stage& stage = stage_at(position);
  Turn turn = stage.turns->at(position - stage.first);
  turn.number += stage.had[turn.source];
  return turn;
}

std::uint64_t StagedTurns::turns_before(std::uint32_t source,
                                        std::uint64_t position) const {
  const Stage& stage = stage_at(position);
  return stage.had[source] +
         stage.turns->turns_before(source, position - stage.first);
}

/// The last stage that had no more of its turns before it.
const StagedTurns::Stage& StagedTurns::stage_of(Turn turn) const {
  const auto after = std::ranges::upper_bound(
      stages_, turn.number, {},
      [&](const Stage& stage) { return stage.had[turn.source]; });
  return *(after - 1);
}

std::optional<std::uint64_t> StagedTurns::position_of(Turn turn) const {
  const Stage& stage = stage_of(turn);
  if (!stage.turns->has(turn.source)) return std::nullopt;
  turn.number -= stage.had[turn.source];
  return stage.first + stage.turns->position_of(turn);
}

std::optional<StagedTurns::Bounds> StagedTurns::bounds_of(Turn turn) const {
  const Stage& stage = stage_of(turn);
  if (!stage.turns->has(turn.source)) return std::nullopt;
  turn.number -= stage.had[turn.source];
  const std::uint64_t least =
      stage.first + stage.turns->least_position_of(turn);
  return Bounds{.least = least, .end = least + stage.turns->size()};
}

}  // namespace leat
