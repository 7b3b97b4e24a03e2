// The shares of the jobs on one node, as jobs come, report and go.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "leat/tune/allocation.h"
#include "leat/tune/decision.h"
#include "leat/tune/pace.h"
#include "leat/tune/sharing_job.h"

namespace leat {

struct SharingOptions {
  AllocationOptions allocation;
  /// The least gain that justifies a change, and the least time after the last
  /// one. An arrival waits for neither.
  double least_gain = 0.05;
  double least_seconds = 10;
};

/// Decides the shares. Pure: it is told what happened and the time.
///
/// A job of which too little is known, or whose figures do not hold, has
/// exactly its even share. Shares change when a job comes or its figures no
/// longer hold. They also change when one goes, ends an epoch or its figures
/// have drifted, if that gains enough. A job that reads nothing for a while
/// keeps its share, and the others may use all of it but its cache; when it
/// reads again they give it back immediately.
///
/// Bandwidth that a job does not use goes to others immediately, and a job that
/// has enough is not held to its limit: limits follow the jobs' reads
/// (bandwidth_lending.h).
///
/// Threads: one at a time.
class NodeSharing {
 public:
  static constexpr std::size_t kKeptDecisions = 256;

  NodeSharing(const NodeResources& node, const SharingOptions& options)
      : node_(node), options_(options) {}

  /// REQUIRES: no job has that id.
  void arrive(const std::string& job, const JobAsk& ask);
  /// Its share is free from now on. Unknown ids are ignored, here and
  /// below.
  void leave(const std::string& job);
  /// decide() learns from it, once all jobs have reported their reads.
  void report(const std::string& job, const JobReport& report);
  /// For a job of several nodes: the other nodes' pace, in samples a second of
  /// as many ranks as are here. The job gets no more than they could follow.
  void set_elsewhere(const std::string& job, const Pace& pace);
  /// The resources have changed, through other programs or limits.
  void set_resources(const NodeResources& node);

  /// Decides again if there is a reason to; true if a share has changed. `now`
  /// in seconds, from any origin.
  bool decide(double now);

  const SharingJobs& jobs() const { return jobs_; }
  const NodeResources& node() const { return node_; }

  /// The latest decisions; the last of them has number decided().
  const std::deque<Decision>& decisions() const { return log_.latest; }
  std::uint64_t decided() const { return log_.count; }

 private:
  /// Why shares may have to change.
  struct Reasons {
    std::string event;  ///< Why to decide immediately, or empty.
    bool has_arrival = false;
    bool has_epoch_ended = false;
    bool has_room = false;  ///< A job has left or the node has grown.
  };
  /// Decisions, numbered from 1.
  struct Log {
    std::deque<Decision> latest;
    std::uint64_t count = 0;
    bool has_said_nothing_to_gain = false;

    void add(Decision decision);
    void fill_in_gain(SharingJob& job);
  };

  void learn(SharingJob& job);
  bool decide_as_known(double now);
  /// All but the idle ones.
  std::vector<SharingEntry*> working();
  /// The resources that these share.
  NodeResources shared() const;
  std::vector<Claim> claims(const std::vector<SharingEntry*>& jobs) const;
  void prefer_short(const std::vector<SharingEntry*>& jobs,
                    std::vector<Claim>& claims) const;
  /// The load of the job's fullest link: bytes read by all / its bandwidth.
  double link_load(const SharingJob& job) const;
  bool is_bandwidth_shared() const;
  bool deal_anew(double now, const std::vector<SharingEntry*>& jobs);
  /// Replaces the bandwidth limits of `grants`.
  void set_limits(const std::vector<SharingEntry*>& jobs,
                  const std::vector<Claim>& claims,
                  std::vector<Grant>& grants) const;
  bool lend(double now, const std::vector<SharingEntry*>& jobs);
  bool is_overfull() const;
  double most_cache_of(const SharingJob& job) const;
  void count_sharers();
  void watch_epochs(SharingJob& job, const JobReport& report);
  void watch_idleness(SharingJob& job, const JobReport& report);
  /// Records what this node would give each job if no other node limited it,
  /// starting from the best grants as things are.
  void make_offers(const std::vector<SharingEntry*>& jobs,
                   const std::vector<Claim>& claims,
                   const std::vector<Grant>& best);
  void note_what_was_decided_by();
  void apply(double now, const std::vector<SharingEntry*>& jobs,
             const std::vector<Grant>& grants);
  bool give_free_cache(double now, const std::vector<SharingEntry*>& jobs,
                       const std::vector<Claim>& claims);
  void tell_nothing_to_gain(double now);

  NodeResources node_;
  const SharingOptions options_;
  SharingJobs jobs_;
  Reasons reasons_;
  double changed_at_ = -kUnbounded;
  Log log_;
};

}  // namespace leat
