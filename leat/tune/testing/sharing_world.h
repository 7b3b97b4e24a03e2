// Jobs that do what they say, or lie about, on a node that NodeSharing divides.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "leat/tune/node_sharing.h"
#include "leat/tune/sharing_simulator.h"

namespace leat {

/// Turns a job's true report into what it says instead.
using Lie = std::function<void(JobReport&)>;

/// Jobs that behave as their truth says, with their grants.
class SharingWorld {
 public:
  explicit SharingWorld(const NodeResources& node,
                        const SharingOptions& options = {})
      : node_(node), sharing_(node, options) {}

  void come(const std::string& job, const JobSpeed& truth, Lie lie = {},
            const JobAsk& ask = {}) {
    jobs_[job] = {.truth = truth, .lie = std::move(lie)};
    sharing_.arrive(job, ask);
    sharing_.decide(now_);
  }
  void go(const std::string& job) {
    jobs_.erase(job);
    sharing_.leave(job);
  }

  /// Reports and decisions, once a second.
  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      for (const auto& [job, is] : jobs_) {
        const Grant grant = read_by(job);
        JobReport said = report_of(is.truth, grant, rate_of(job), 1);
        if (is.is_idle) {
          said = {.seconds = 1};
          if (is.is_stuck) said.wait_seconds = 1;
        }
        if (is.begins_epochs) said.epochs = 1;
        if (is.lie) is.lie(said);
        sharing_.report(job, said);
      }
      now_ += 1;
      if (sharing_.decide(now_)) ++changes_;
    }
  }

  double rate_of(const std::string& job) const {
    return predict(jobs_.at(job).truth, read_by(job)).rate;
  }
  /// Its grant, and all that its cache holds.
  Grant read_by(const std::string& job) const {
    const SharingJob& is = sharing_.jobs().find(job)->second;
    Grant grant = is.grant;
    if (is.ask.shared_cache.empty()) return grant;
    grant.cache_bytes = 0;
    for (const auto& [id, other] : sharing_.jobs()) {
      if (other.ask.shared_cache != is.ask.shared_cache) continue;
      grant.cache_bytes += other.grant.cache_bytes;
    }
    return grant;
  }
  double threads_of(const std::string& job) const {
    return sharing_.jobs().find(job)->second.grant.threads;
  }
  const Grant& grant_of(const std::string& job) const {
    return sharing_.jobs().find(job)->second.grant;
  }
  void set_idle(const std::string& job, bool is_idle) {
    jobs_[job].is_idle = is_idle;
  }
  void set_stuck(const std::string& job) {
    jobs_[job].is_idle = jobs_[job].is_stuck = true;
  }
  void begin_epochs(const std::string& job, bool begins) {
    jobs_[job].begins_epochs = begins;
  }
  NodeSharing& sharing() { return sharing_; }
  int changes() const { return changes_; }
  JobSpeed& truth_of(const std::string& job) { return jobs_[job].truth; }

 private:
  struct Is {
    JobSpeed truth;
    Lie lie;
    bool is_idle = false;
    bool begins_epochs = false;  ///< One a second.
    bool is_stuck = false;       ///< Waits in next(), and nothing comes.
  };
  NodeResources node_;
  NodeSharing sharing_;
  std::map<std::string, Is> jobs_;
  double now_ = 0;
  int changes_ = 0;
};

}  // namespace leat
