// A job on a node: the facts about it, and its share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/tune/allocation.h"
#include "leat/tune/cache_places.h"
#include "leat/tune/job_fit.h"
#include "leat/tune/pace.h"

namespace leat {

/// The known facts of a job when it comes.
struct JobAsk {
  double samples_to_do = 0;          ///< For its ranks here; 0: not known.
  double most_threads = kUnbounded;  ///< That its user allows, all ranks here.
  double most_in_flight = kUnbounded;
  /// Samples of an epoch, for all ranks; 0: not known.
  double dataset_samples = 0;
  CacheRoom cache;  ///< The same as the first two.
  /// Jobs that say the same have one cache: each fills a part of it, and is
  /// answered from all. Empty: its own.
  std::string shared_cache;
  std::vector<std::size_t> buckets = {};  ///< Claim::buckets, of its node's.
};

/// One of the jobs of a NodeSharing, which alone writes to it.
struct SharingJob {
  static constexpr double kIdleSeconds = 10;

  JobAsk ask;
  JobFit fit;
  /// Its bandwidth is a limit: all together may be more than there is.
  Grant grant;
  /// The node decides about its cache, and not its user alone.
  bool is_cache_dealt = true;
  std::size_t sharers = 1;  ///< Jobs that have its cache, with itself.
  double samples_done = 0;
  double epoch_seconds = 0;  ///< Since its epoch began.
  /// The plan for a division of it.
  double planned_bytes_per_second = kUnbounded;
  double read_bytes_per_second = 0;    ///< Lately.
  double reading = 0;                  ///< The same, by its last report alone.
  std::optional<JobReport> unlearned;  ///< Its last one, until decide().
  /// Reports of seconds that brought nothing; they count with the next that
  /// does.
  std::optional<JobReport> carried;
  double carried_expected = 0;  ///< Samples, that were expected in them.
  bool has_found = false;       ///< By the last decide(): a new found_rate().
  /// Samples a second that it was expected to do while it did fit's
  /// found_rate(), before that was learned from; 0: not known.
  double foretold_rate = 0;
  double expected_rate = 0;  ///< The same for its next work.
  Grant told;                ///< By the latest lines of decisions.
  double idle_seconds = 0;   ///< Since it has asked for anything.
  std::optional<Pace> elsewhere;
  double offered = 0;   ///< See Pace; 0: not yet known.
  JobSpeed decided_by;  ///< speed() when the grant was decided.
  double decided_outside = kUnbounded;
  bool was_known = false;
  std::uint64_t changes = 0;  ///< Changes of its grant, after the first.
  // A gain that was expected and is yet to be found.
  double rate_before = 0;
  std::uint32_t reports_since = 0;
  std::uint64_t decision = 0;  ///< The first of a change; 0: none.
  /// The last decision about the same change.
  std::uint64_t last_decision = 0;

  bool is_idle() const { return idle_seconds >= kIdleSeconds; }
  /// By its reports here and elsewhere.
  JobSpeed speed() const;
  /// Its rate with its grant, by the model; 0: not yet known.
  double predicted_rate() const;
  /// The part of a grant that the job's user allows.
  Grant within_ask(Grant given) const;
  /// How fast it goes with a grant, and within what its user allows.
  Prediction predict_with(const Grant& with) const;
  /// The pace to tell its other nodes; nullopt: too little is known.
  std::optional<Pace> pace() const;
  /// The most that its other nodes could follow.
  double outside() const;
  /// The room that it may fill itself.
  CacheRoom room() const;
};

/// A job and its id.
using SharingEntry = std::pair<const std::string, SharingJob>;
using SharingJobs = std::map<std::string, SharingJob, std::less<>>;

}  // namespace leat
