// The jobs of a node as its agent knows them: their identities, reports and
// shares.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/agent/node_view.h"
#include "leat/agent/wire/messages.h"
#include "leat/base/check.h"
#include "leat/tune/node_sharing.h"

namespace leat {

/// One connection: a rank of a job. Numbers are not reused.
using MemberId = std::uint64_t;

/// Brings ranks together to jobs, counters to reports, and grants of jobs to
/// shares of ranks. A job is what says the same `job` under the same user, so
/// nobody can speak for a job of somebody else. Reads no clock and no socket.
///
/// Threads: one at a time.
class JobBook {
 public:
  /// Points of the history are kept for ten minutes, as long as their number
  /// stays small.
  static constexpr double kKeptSeconds = 600;
  static constexpr std::size_t kFewPoints = 3600;
  static constexpr std::size_t kMostPoints = 36'000;

  /// `buckets`: the loaders' names of those in node.bucket_bytes_per_second.
  ///
  /// REQUIRES: both have the same length.
  JobBook(const NodeResources& node, const SharingOptions& options,
          std::vector<std::string> buckets = {})
      : options_(options),
        buckets_(std::move(buckets)),
        sharing_(node, options) {
    LEAT_CHECK(buckets_.size() == node.bucket_bytes_per_second.size());
  }

  void join(MemberId member, std::uint32_t user, std::int32_t pid,
            const WireRegistration& registration, double unix_seconds);
  /// Ignores unknown members.
  void leave(MemberId member);
  void report(MemberId member, const WireRates& rates);
  void set_resources(const NodeResources& node) {
    sharing_.set_resources(node);
  }

  /// Learns from the reports since the last call, and decides. Call about once
  /// a second. `now`: seconds on any clock that never goes back. A rank that
  /// has reported nothing for three seconds (its process was stopped) counts as
  /// one that does nothing. From its first report after that on, it is learned
  /// from again.
  void tick(double now, double unix_seconds);

  struct Told {
    Share share;
    /// For a job with ranks on other nodes too, once it is known: the pace of
    /// one rank.
    std::optional<Pace> pace = {};
  };
  /// The shares and paces that differ from those last sent, by member. Each is
  /// returned once.
  std::map<MemberId, Told> take_shares();

  std::vector<std::int32_t> pids() const;
  /// The rank of job `id` that has been here longest; nullopt: no such job.
  std::optional<MemberId> first_member(const std::string& id) const;
  /// The id of the job of a member; empty: no such member.
  std::string job_of(MemberId member) const;
  std::size_t members() const { return members_.size(); }
  /// The part of a NodeView that is known here: its jobs, decisions, history
  /// and objective.
  NodeView view() const;

 private:
  using RankOfProcess = std::pair<std::int32_t, std::uint32_t>;
  struct Member {
    std::string job;  ///< Its id.
    std::uint32_t user = 0;
    std::int32_t pid = 0;
    WireRegistration registration;
    std::optional<WireRates> learned;  ///< The rates already learned from.
    std::optional<WireRates> latest;
    std::optional<Told> told;
    bool has_spoken = false;         ///< Since the last tick().
    std::optional<double> heard_at;  ///< Or came, by tick()'s clock.
    bool is_silent = false;

    RankOfProcess who() const { return {pid, registration.rank}; }
  };
  struct Job {
    WireRegistration registration;  ///< The first rank's.
    std::uint32_t user = 0;
    double since = 0;
    std::vector<MemberId> members;
    double learned_at = 0;  ///< By tick()'s clock.
    /// The last totals of those that have left.
    std::map<RankOfProcess, JobTotals> left;
    JobTotals had;  ///< The sum of those that left before them.
    JobReport last;
    Share held;                            ///< In that time, of all its ranks.
    std::map<std::string, double> stalls;  ///< For the same time, as fractions.
  };

  void admit(const std::string& id, Job& job);
  static void keep_totals(const Member& member, Job& job);
  void notice_silence(double now);
  bool learn(const std::string& id, Job& job, double now);
  /// Adds a point to the history.
  void note(const std::string& id, const Job& job, double unix_seconds);
  void hear_of_elsewhere(const std::string& id, const Job& job);
  std::optional<Pace> pace_of(const Job& job, const SharingJob& known) const;
  Share whole_share_of(const SharingJob& known) const;
  Share cache_share_of(const SharingJob& known) const;
  Share share_of(const Job& job, std::size_t place,
                 const SharingJob& known) const;
  std::vector<LinkView> links() const;
  JobView view_of(const std::string& id, const Job& job) const;

  const SharingOptions options_;
  const std::vector<std::string> buckets_;
  NodeSharing sharing_;
  std::map<MemberId, Member> members_;
  std::map<std::string, Job> jobs_;
  std::map<std::pair<std::uint32_t, std::string>, std::string> ids_;
  std::uint64_t jobs_ever_ = 0;
  std::uint64_t decisions_dated_ = 0;
  std::deque<NumberedDecision> decisions_;
  std::deque<JobPoint> history_;
};

}  // namespace leat
