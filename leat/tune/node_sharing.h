// The shares of the jobs on one node, as they come, report and go.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/tune/allocation.h"
#include "leat/tune/cache_places.h"
#include "leat/tune/decision.h"
#include "leat/tune/job_fit.h"
#include "leat/tune/pace.h"

namespace leat {

struct SharingOptions {
  AllocationOptions allocation;
  /// The least gain of a change of mind, and the least time after the last one.
  /// An arrival waits for neither.
  double least_gain = 0.05;
  double least_seconds = 10;
};

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

/// Decides the shares. Pure: it is told what happened and the time.
///
/// A job of which too little is known, or whose figures do not hold, has its
/// even share: no more, and no less. Shares change when a job comes or its
/// figures no longer hold. They also change when one goes, ends an epoch or its
/// figures have drifted, if that gains enough. A job that asks for nothing for
/// a while keeps its share, and the others may use all of it but its cache;
/// when it reads again they give it back at once.
///
/// Others get the bandwidth that a job does not use at once, and a job that has
/// enough is not held to its limit: limits follow the jobs' reads
/// (bandwidth_lending.h).
///
/// Threads: one at a time.
class NodeSharing {
 public:
  static constexpr std::size_t kKeptDecisions = 256;
  static constexpr double kIdleSeconds = 10;

  NodeSharing(const NodeResources& node, const SharingOptions& options)
      : node_(node), options_(options) {}

  /// REQUIRES: no job of that id is there.
  void arrive(const std::string& job, const JobAsk& ask);
  /// Its share is free from now on. Unknown ids are passed over, here and
  /// below.
  void leave(const std::string& job);
  /// Learned from by decide(), once all jobs have said what they read.
  void report(const std::string& job, const JobReport& report);
  /// For a job of several nodes: the other nodes' pace, in samples a second of
  /// as many ranks as are here. The job gets no more than they could follow.
  void set_elsewhere(const std::string& job, const Pace& pace);
  /// The resources have changed: other programs, or limits.
  void set_resources(const NodeResources& node);

  /// Decides anew if there is a reason to; true if a share has changed.
  /// `now` in seconds, since whenever the caller likes.
  bool decide(double now);

  struct Job {
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
    double read_bytes_per_second = 0;  ///< Lately.
    double reading = 0;                ///< The same, by its last report alone.
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
    bool is_idle() const { return idle_seconds >= kIdleSeconds; }
    std::optional<Pace> elsewhere;
    double offered = 0;   ///< See Pace; 0: not yet known.
    JobSpeed decided_by;  ///< speed_of() when the grant was decided.
    double decided_outside = kUnbounded;
    bool was_known = false;
    std::uint64_t changes = 0;  ///< Changes of its grant, after the first.
    // A gain that was expected and is yet to be found.
    double rate_before = 0;
    std::uint32_t reports_since = 0;
    std::uint64_t decision = 0;  ///< The first of a change; 0: none.
    /// The last decision about the same change.
    std::uint64_t last_decision = 0;
  };
  const std::map<std::string, Job, std::less<>>& jobs() const { return jobs_; }
  const NodeResources& node() const { return node_; }

  /// The latest ones, the latest last, which has number decided().
  const std::deque<Decision>& decisions() const { return decisions_; }
  std::uint64_t decided() const { return decided_; }

  /// By its reports here and elsewhere.
  static JobSpeed speed_of(const Job& job);
  /// The rate of a job with its grant, by the model; 0: not yet known.
  static double predicted_rate(const Job& job);
  /// How fast it goes with a grant, and within what its user allows.
  static Prediction predict_with(const Job& job, const Grant& grant);
  /// The pace to tell its other nodes; nullopt: too little is known.
  static std::optional<Pace> pace_of(const Job& job);

 private:
  using JobEntry = std::pair<const std::string, Job>;
  void learn(Job& job);
  bool decide_as_known(double now);
  /// All but those that are idle.
  std::vector<JobEntry*> working();
  /// The resources that these share.
  NodeResources shared() const;
  std::vector<Claim> claims(const std::vector<JobEntry*>& jobs) const;
  void prefer_short(const std::vector<JobEntry*>& jobs,
                    std::vector<Claim>& claims) const;
  /// The load of the job's fullest link: bytes read by all / its bandwidth.
  double link_load(const Job& job) const;
  bool is_bandwidth_shared() const;
  bool deal_anew(double now, const std::vector<JobEntry*>& jobs);
  /// Replaces the bandwidth limits of `grants`.
  void set_limits(const std::vector<JobEntry*>& jobs,
                  const std::vector<Claim>& claims,
                  std::vector<Grant>& grants) const;
  bool lend(double now, const std::vector<JobEntry*>& jobs);
  bool has_drifted() const;
  bool is_overfull() const;
  bool has_newly_known() const;
  /// Such a job is due its even share, for any gain or loss.
  bool has_lost_figures() const;
  static double outside_of(const Job& job);
  static CacheRoom room_of(const Job& job);
  double most_cache_of(const Job& job) const;
  void count_sharers();
  void watch_epochs(Job& job, const JobReport& report);
  void watch_idleness(Job& job, const JobReport& report);
  /// Takes down what this node would give to each if nothing elsewhere bounded
  /// it, by the grants that are best as things are.
  void make_offers(const std::vector<JobEntry*>& jobs,
                   const std::vector<Claim>& claims,
                   const std::vector<Grant>& best);
  void note_what_was_decided_by();
  void apply(double now, const std::vector<JobEntry*>& jobs,
             const std::vector<Grant>& grants);
  static void level_shared_caches(const std::vector<JobEntry*>& jobs,
                                  std::vector<Grant>& grants);
  bool give_free_cache(double now, const std::vector<JobEntry*>& jobs,
                       const std::vector<Claim>& claims);
  void tell(Decision decision);
  void tell_nothing_to_gain(double now);
  void look_for_gain(Job& job);

  NodeResources node_;
  const SharingOptions options_;
  std::map<std::string, Job, std::less<>> jobs_;
  std::string event_;  ///< Why to decide at once; else empty.
  bool has_arrival_ = false;
  bool has_epoch_ended_ = false;
  bool has_room_ = false;  ///< Somebody has left or the node has grown.
  bool has_said_nothing_to_gain_ = false;
  double changed_at_ = -kUnbounded;
  std::deque<Decision> decisions_;
  std::uint64_t decided_ = 0;
};

}  // namespace leat
