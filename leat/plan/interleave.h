// Gives each position of a stream to one of several sources, by weight.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/mutex.h"

namespace leat {

/// How the turns of sources lie among each other.
enum class Composition : std::uint8_t {
  /// In an order drawn anew for each period.
  kRandom,
  /// As evenly as can be: after any number of turns each source has had its
  /// share of them, to less than one.
  kStratified,
  /// In an order drawn anew for each period, and each turn is a whole step.
  kPerSource,
};

/// An endless stream of turns in which each source has a share by weight.
///
/// Shares are whole units, and each period of as many turns as there are units
/// gives every source its own. So the turns that a source has had before any
/// position follow in closed form, and nothing is scanned.
///
/// Threads: any; its answers never change. Takes 10 bytes a unit; if random, up
/// to 10 MB. A look-up takes O(1); if random, once O(units) in a period that
/// was not looked at lately.
class Interleave {
 public:
  /// The most units: weights are exact to this part.
  static constexpr std::uint32_t kMostUnits = 1 << 20;
  /// With random turns, which are laid out anew for each period.
  static constexpr std::uint32_t kMostRandomUnits = 1 << 16;
  static constexpr std::size_t kMostSources = 1 << 16;

  /// The units of each weight: as few as give the weights exactly, if some
  /// thousands do; otherwise `most`, by the largest remainders. A weight above
  /// 0 has at least one. REQUIRES: weights are finite and not below 0, one is
  /// above; there are at most `most` of them.
  static std::vector<std::uint32_t> units_of(std::span<const double> weights,
                                             std::uint32_t most);

  /// `key` draws the order of random turns. REQUIRES: some units, at most
  /// kMostUnits in all, of at most kMostSources sources.
  Interleave(std::span<const std::uint32_t> units, Composition composition,
             std::uint64_t key);

  /// The n-th turn of a source, from 0 on.
  struct Turn {
    std::uint32_t source = 0;
    std::uint64_t number = 0;
    friend bool operator==(const Turn&, const Turn&) = default;
  };
  Turn at(std::uint64_t position) const;
  /// REQUIRES: the source has units.
  std::uint64_t position_of(Turn turn) const;
  /// A position that is not above it, and less than a period below: without a
  /// period to lay out. REQUIRES: the source has units.
  std::uint64_t least_position_of(Turn turn) const {
    return turn.number / units(turn.source) * size();
  }
  /// Turns of a period.
  std::uint64_t size() const { return begin_.back(); }
  /// The turns of a source before a position.
  std::uint64_t turns_before(std::uint32_t source,
                             std::uint64_t position) const;
  std::size_t sources() const { return begin_.size() - 1; }
  bool has(std::uint32_t source) const {
    return begin_[source] != begin_[source + 1];
  }

 private:
  /// The turns of one period.
  struct Period {
    std::vector<std::uint16_t> source;  ///< By place in the period.
    std::vector<std::uint32_t> number;  ///< By place: which of its source's.
    std::vector<std::uint32_t> places;  ///< By source, rising: see begin_.
  };
  /// Turns of random periods are cached, up to this many: the samples
  /// of a piece are far apart in the stream, and their positions are
  /// looked up together.
  static constexpr std::uint64_t kCachedTurns = 1 << 20;
  static constexpr std::uint64_t kMostCached = 64;
  struct CachedPeriod {
    std::uint64_t index = 0;
    std::shared_ptr<const Period> period;
  };

  std::uint64_t units(std::uint32_t source) const {
    return begin_[source + 1] - begin_[source];
  }
  std::span<const std::uint32_t> places_of(const Period& period,
                                           std::uint32_t source) const {
    return std::span(period.places).subspan(begin_[source], units(source));
  }
  std::shared_ptr<const Period> period(std::uint64_t index) const;
  Period numbered(std::vector<std::uint16_t> sources) const;
  std::vector<std::uint16_t> even() const;
  std::vector<std::uint16_t> drawn(std::uint64_t index) const;

  std::vector<std::uint64_t>
      begin_;  ///< By source, and one more: of its units.
  std::uint64_t key_;
  std::shared_ptr<const Period> every_;  ///< Null if random.
  mutable Mutex mutex_;
  /// By the number of a period, modulo how many there are.
  mutable std::vector<CachedPeriod> cache_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
