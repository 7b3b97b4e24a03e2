// The samples that may take the place of one that is passed over.
#pragma once
#include <cstdint>
#include <optional>

#include "leat/base/ids.h"
#include "leat/plan/order.h"

namespace leat {

/// Draws samples for the place of one that is bad, or that a function skips.
///
/// The n-th draw for a position is the sample at another position of the same
/// epoch, each as likely, and of the same source in a mixed stream. It is a
/// function of (seed, epoch, position, n) alone. So every world size, every
/// resume and every later run finds the same substitute, whether it knew before
/// it read that the sample is passed over or learns it then; and ranks never
/// have to agree.
///
/// A value; O(1) memory.
class Substitutes {
 public:
  /// `position` is that of the sample, in `order`; `first_sample` is the number
  /// of samples of the dataset before those of the order.
  Substitutes(std::uint64_t seed, std::uint64_t epoch,
              std::uint64_t first_sample, std::uint64_t position);

  /// The next one. Nullopt: the source has too few positions in this epoch to
  /// find another in kMostDraws draws.
  /// REQUIRES: always the same order, which knows the position.
  std::optional<SampleId> next(const EpochOrder& order);

  static constexpr std::uint64_t kMostDraws = 1 << 20;

 private:
  std::uint64_t key_;
  std::uint64_t position_;
  std::uint64_t draws_ = 0;
};

}  // namespace leat
