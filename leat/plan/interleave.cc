#include "leat/plan/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/base/uint128.h"

namespace leat {
namespace {

/// Random periods have at least as many turns, so that runs of one source come
/// as long as chance makes them.
constexpr std::uint64_t kLeastRandomUnits = 4096;
/// Numbers of units up to this one are searched for one that gives
/// the weights exactly.
constexpr std::uint32_t kMostExactUnits = 4096;

/// Weights as shares of 1.
std::vector<double> shares_of(std::span<const double> weights) {
  // By the largest first, so that no sum overflows.
  const double most = std::ranges::max(weights);
  std::vector<double> shares(weights.begin(), weights.end());
  double sum = 0;
  for (double& share : shares) sum += share /= most;
  for (double& share : shares) share /= sum;
  return shares;
}

bool are_exact(std::span<const double> shares, std::uint32_t units) {
  constexpr double kClose = 1e-9;
  return std::ranges::all_of(shares, [&](double share) {
    const double exact = share * units;
    return std::abs(exact - std::round(exact)) < kClose &&
           (share == 0 || exact > 0.5);
  });
}

/// Deals units by the largest remainders (Hamilton's method), at
/// least one to each.
std::vector<std::uint32_t> rounded(std::span<const double> shares,
                                   std::uint32_t most) {
  std::vector<std::uint32_t> units(shares.size());
  std::vector<std::pair<double, std::size_t>> rest;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    const double exact = shares[i] * most;
    units[i] = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(exact));
    sum += units[i];
    rest.emplace_back(exact - units[i], i);
  }
  std::ranges::sort(rest, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (std::size_t i = 0; sum < most; i = (i + 1) % rest.size(), ++sum) {
    ++units[rest[i].second];
  }
  // Weights next to nothing had one more than their share: others pay for it.
  while (sum > most) {
    --*std::ranges::max_element(units);
    --sum;
  }
  return units;
}

}  // namespace

std::vector<std::uint32_t> Interleave::units_of(std::span<const double> weights,
                                                std::uint32_t most) {
  LEAT_CHECK(!weights.empty() && std::ranges::max(weights) > 0);
  LEAT_CHECK(weights.size() <= most && most <= kMostUnits);
  const std::vector<double> shares = shares_of(weights);
  for (std::uint32_t few = 1; few <= std::min(most, kMostExactUnits); ++few) {
    if (!are_exact(shares, few)) continue;
    std::vector<std::uint32_t> units;
    for (const double share : shares) {
      units.push_back(static_cast<std::uint32_t>(std::lround(share * few)));
    }
    return units;
  }
  return rounded(shares, most);
}

Interleave::Interleave(std::span<const std::uint32_t> units,
                       Composition composition, std::uint64_t key)
    : key_(mix64(key)) {
  LEAT_CHECK(units.size() <= kMostSources);
  const std::uint64_t sum =
      std::accumulate(units.begin(), units.end(), std::uint64_t{0});
  LEAT_CHECK(sum > 0 && sum <= kMostUnits);
  const bool is_even = composition == Composition::kStratified;
  const std::uint64_t times =
      is_even ? 1 : (std::max(sum, kLeastRandomUnits) + sum - 1) / sum;
  begin_.push_back(0);
  for (const std::uint32_t its : units) {
    begin_.push_back(begin_.back() + times * its);
  }
  if (is_even) {
    every_ = std::make_shared<const Period>(numbered(even()));
  } else {
    cache_.resize(
        std::clamp<std::uint64_t>(kCachedTurns / size(), 2, kMostCached));
  }
}

Interleave::Turn Interleave::at(std::uint64_t position) const {
  const std::uint64_t index = position / size();
  const std::uint64_t place = position % size();
  const std::shared_ptr<const Period> its = period(index);
  const std::uint32_t source = its->source[place];
  return {.source = source,
          .number = index * units(source) + its->number[place]};
}

std::uint64_t Interleave::position_of(Turn turn) const {
  const std::uint64_t its = units(turn.source);
  LEAT_CHECK(its != 0);
  const std::uint64_t index = turn.number / its;
  return index * size() +
         places_of(*period(index), turn.source)[turn.number % its];
}

std::uint64_t Interleave::turns_before(std::uint32_t source,
                                       std::uint64_t position) const {
  const std::uint64_t index = position / size();
  const std::uint64_t place = position % size();
  if (place == 0 || !has(source)) return index * units(source);
  const auto places = places_of(*period(index), source);
  const auto after = std::ranges::lower_bound(places, place);
  return index * units(source) +
         static_cast<std::uint64_t>(after - places.begin());
}

std::shared_ptr<const Interleave::Period> Interleave::period(
    std::uint64_t index) const {
  if (every_ != nullptr) return every_;
  const MutexLock lock(mutex_);
  CachedPeriod& cached = cache_[index % cache_.size()];
  if (cached.period == nullptr || cached.index != index) {
    cached = {.index = index,
              .period = std::make_shared<const Period>(numbered(drawn(index)))};
  }
  return cached.period;
}

Interleave::Period Interleave::numbered(
    std::vector<std::uint16_t> sources) const {
  Period made{.source = std::move(sources), .number = {}, .places = {}};
  made.number.resize(size());
  made.places.resize(size());
  std::vector<std::uint32_t> had(begin_.size() - 1);
  for (std::size_t place = 0; place < made.source.size(); ++place) {
    const std::uint32_t source = made.source[place];
    made.number[place] = had[source]++;
    made.places[begin_[source] + made.number[place]] =
        static_cast<std::uint32_t>(place);
  }
  return made;
}

// R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32
// (1980): of the sources whose next turn is not too early, the one whose next
// turn is too late the soonest. With k sources no number of turns is ever
// further than 1 - 1 / (2k - 2) from its share.
std::vector<std::uint16_t> Interleave::even() const {
  struct Next {
    std::uint64_t turn = 0;  ///< The first that is not too early; or the last.
    std::uint16_t source = 0;
    bool operator>(const Next& other) const {
      return turn != other.turn ? turn > other.turn : source > other.source;
    }
  };
  using Soonest = std::priority_queue<Next, std::vector<Next>, std::greater<>>;
  const auto sources = static_cast<std::uint16_t>(begin_.size() - 1);
  const std::uint64_t parts = std::max<std::uint64_t>(2 * sources, 4) - 2;
  // The turn, rounded down, at which `whole` parts of a source's turns are due.
  const auto turn_of = [&](std::uint64_t whole, std::uint16_t source) {
    const Uint128 per = Uint128{units(source)} * parts;
    return static_cast<std::uint64_t>(Uint128{whole} * size() / per);
  };
  // The first turn that is not too early.
  const auto release_of = [&](std::uint64_t whole, std::uint16_t source) {
    const Uint128 per = Uint128{units(source)} * parts;
    return static_cast<std::uint64_t>((Uint128{whole} * size() + per - 1) /
                                      per);
  };
  Soonest waiting;
  Soonest ready;
  std::vector<std::uint64_t> had(sources);
  for (std::uint16_t source = 0; source < sources; ++source) {
    if (has(source)) waiting.push({release_of(1, source), source});
  }
  std::vector<std::uint16_t> made;
  made.reserve(size());
  for (std::uint64_t turn = 1; turn <= size(); ++turn) {
    while (!waiting.empty() && waiting.top().turn <= turn) {
      const std::uint16_t source = waiting.top().source;
      waiting.pop();
      ready.push({turn_of((had[source] + 1) * parts - 1, source), source});
    }
    LEAT_CHECK(!ready.empty());
    const std::uint16_t source = ready.top().source;
    ready.pop();
    made.push_back(source);
    if (++had[source] < units(source)) {
      waiting.push({release_of(had[source] * parts + 1, source), source});
    }
  }
  return made;
}

/// Fisher and Yates' shuffle of all turns of a period.
std::vector<std::uint16_t> Interleave::drawn(std::uint64_t index) const {
  std::vector<std::uint16_t> made;
  made.reserve(size());
  for (std::size_t source = 0; source + 1 < begin_.size(); ++source) {
    made.insert(made.end(), begin_[source + 1] - begin_[source],
                static_cast<std::uint16_t>(source));
  }
  const std::uint64_t key = mix64(key_ + mix64(index));
  for (std::uint64_t left = made.size(); left > 1; --left) {
    const Uint128 wide = Uint128{mix64(key ^ mix64(left))} * left;
    std::swap(made[left - 1], made[static_cast<std::size_t>(wide >> 64)]);
  }
  return made;
}

}  // namespace leat
