// A catalogue that a job makes once for all its nodes.
#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/index/build_turn.h"
#include "leat/index/published.h"

namespace leat {

/// Announces beside the data, again and again, that this process builds: the
/// nodes of a job have nothing else in common.
///
/// Threads: one at a time; it has one of its own. Destruction stops it.
class BuildingSign {
 public:
  /// Errors: as Store::write: then nothing can be shared there
  static Result<std::unique_ptr<BuildingSign>> put_up(
      Store& store, std::string_view prefix, const TurnTimes& times,
      const std::stop_token& stop);

 private:
  BuildingSign(Store& store, std::string key, Nanoseconds every);
  void renew(const std::stop_token& stop);

  Store& store_;
  const std::string key_;
  const Nanoseconds every_;
  std::jthread thread_;  // Last: joined before the rest dies.
};

/// Watches from another node for the catalogue, or for the sign.
///
/// Threads: one at a time.
class FirstNode {
 public:
  /// `outdated`: the catalogue to be replaced; null if there is none.
  FirstNode(const PublishedPlace& place, const CatalogueOptions& options,
            const OpenedCatalogue* outdated);

  /// kThere: found() returns it. Asks the store once every `TurnTimes::pace`,
  /// and no more once that is impossible.
  /// Errors: as find_published().
  Result<Sight> look(const std::stop_token& stop);

  std::optional<OpenedCatalogue>& found() { return found_; }

 private:
  Result<Sight> ask(TimePoint now, const std::stop_token& stop);

  const PublishedPlace& place_;
  const CatalogueOptions& options_;
  const OpenedCatalogue* const outdated_;
  const SteadyClock clock_;
  const TimePoint begin_ = clock_.now();
  std::optional<TimePoint> asked_;
  Sight sight_ = Sight::kComing;
  std::string sign_;  ///< The ETag last seen; empty: none.
  TimePoint renewed_;
  std::optional<OpenedCatalogue> found_;
};

}  // namespace leat
