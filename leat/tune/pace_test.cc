// Jobs of several nodes: the grants of each node if the others set the pace.
#include "leat/tune/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "leat/tune/node_sharing.h"
#include "leat/tune/sharing_simulator.h"

namespace leat {
namespace {

/// Nodes of eight threads, whose agents tell each other the paces of the jobs
/// that are on more than one; ranks go in step.
class Nodes {
 public:
  explicit Nodes(std::size_t count)
      : nodes_(count, NodeSharing({.threads = 8}, {})) {}

  void come(const std::string& job, const JobSpeed& truth,
            const std::vector<std::size_t>& at) {
    jobs_[job] = {truth, at};
    for (const std::size_t node : at) {
      nodes_[node].arrive(job, {});
      nodes_[node].decide(now_);
    }
  }
  void go(const std::string& job) {
    for (const std::size_t node : jobs_[job].at) nodes_[node].leave(job);
    jobs_.erase(job);
  }

  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      for (const auto& [job, is] : jobs_) {
        report(job, is);
        if (agree_) tell(job, is);
      }
      now_ += 1;
      for (NodeSharing& node : nodes_) node.decide(now_);
    }
  }

  double threads_of(const std::string& job, std::size_t node) const {
    return job_on(job, node).grant.threads;
  }
  double rate_of(const std::string& job) const {
    double rate = kUnbounded;
    const Is& is = jobs_.at(job);
    for (const std::size_t node : is.at) {
      rate = std::min(rate, predict(is.truth, job_on(job, node).grant).rate);
    }
    return rate;
  }
  const SharingJob& job_on(const std::string& job, std::size_t node) const {
    return nodes_[node].jobs().find(job)->second;
  }
  void do_not_agree() { agree_ = false; }

 private:
  struct Is {
    JobSpeed truth;
    std::vector<std::size_t> at;
  };

  void report(const std::string& job, const Is& is) {
    const double rate = rate_of(job);
    for (const std::size_t node : is.at) {
      const Grant& grant = job_on(job, node).grant;
      JobSpeed seen = is.truth;
      // Waiting for the others looks like training.
      if (predict(is.truth, grant).rate > rate) seen.compute_ceiling = rate;
      nodes_[node].report(job, report_of(seen, grant, rate, 1));
    }
  }
  void tell(const std::string& job, const Is& is) {
    for (const std::size_t here : is.at) {
      std::optional<Pace> elsewhere;
      for (const std::size_t there : is.at) {
        const auto pace = job_on(job, there).pace();
        if (there == here || !pace) continue;
        elsewhere = elsewhere ? joined(*elsewhere, *pace) : *pace;
      }
      if (elsewhere) nodes_[here].set_elsewhere(job, *elsewhere);
    }
  }

  std::vector<NodeSharing> nodes_;
  std::map<std::string, Is> jobs_;
  double now_ = 0;
  bool agree_ = true;
};

constexpr JobSpeed kWide{.compute_ceiling = 600, .rate_per_thread = 100};
constexpr JobSpeed kHungry{.compute_ceiling = 1300, .rate_per_thread = 100};
constexpr JobSpeed kSmall{.compute_ceiling = 200, .rate_per_thread = 100};

/// `wide` on both; a neighbour that takes all it gets on the first, three on
/// the second that leave it two threads.
void crowd_the_second(Nodes& nodes) {
  nodes.come("hungry", kHungry, {0});
  for (const std::string job : {"a", "b", "c"}) nodes.come(job, kSmall, {1});
  nodes.come("wide", kWide, {0, 1});
}

TEST(PaceTest, IsTheLeastOfNodesAndTheHighestCeiling) {
  const Pace one{.offered = 10, .reached = 8, .ceiling = 40};
  const Pace other{.offered = 20, .reached = 5, .ceiling = 30};

  EXPECT_EQ(joined(one, other), (Pace{10, 5, 40}));
  EXPECT_EQ(scaled(one, 0.5), (Pace{5, 4, 20}));
}

TEST(PaceTest, AShareThatWouldNotLiftTheLeastIsNotGiven) {
  Nodes nodes(2);
  crowd_the_second(nodes);

  nodes.run(60);

  // Two threads there: a third here, and it is headroom, not speed.
  EXPECT_EQ(nodes.rate_of("wide"), 200);
  EXPECT_LE(nodes.threads_of("wide", 0), 3);
  EXPECT_GE(nodes.threads_of("hungry", 0), 5);
  // Each node hears the pace that the job would be given on the other.
  EXPECT_GE(nodes.job_on("wide", 0).offered, 500);
  EXPECT_LE(nodes.job_on("wide", 1).offered, 300);
}

TEST(PaceTest, WithoutAWordMoreIsGivenThanHelps) {
  Nodes nodes(2);
  nodes.do_not_agree();
  nodes.come("wide", kWide, {0});
  nodes.come("hungry", kHungry, {0});

  nodes.run(60);

  EXPECT_GE(nodes.threads_of("wide", 0), 6);
}

TEST(PaceTest, WhenTheSlowestGetsRoomAllRiseTogether) {
  Nodes nodes(2);
  crowd_the_second(nodes);
  nodes.run(60);
  ASSERT_EQ(nodes.rate_of("wide"), 200);

  for (const std::string job : {"a", "b", "c"}) nodes.go(job);
  nodes.run(15);

  // Not in many small steps: the second said what it could give.
  EXPECT_EQ(nodes.rate_of("wide"), 600);
}

TEST(PaceTest, OfThreeNodesTheSlowestCounts) {
  Nodes nodes(3);
  crowd_the_second(nodes);
  nodes.go("wide");
  nodes.come("wide", kWide, {0, 1, 2});
  nodes.come("other", kHungry, {2});

  nodes.run(60);

  EXPECT_EQ(nodes.rate_of("wide"), 200);
  EXPECT_GE(nodes.threads_of("hungry", 0), 5);
  EXPECT_GE(nodes.threads_of("other", 2), 5);
}

TEST(PaceTest, APredictionIsTheLeastOfAll) {
  Nodes nodes(2);
  crowd_the_second(nodes);
  nodes.run(60);

  for (const std::size_t node : {0, 1}) {
    const SharingJob& job = nodes.job_on("wide", node);
    EXPECT_NEAR(job.predicted_rate(), 200, 4);
    EXPECT_GT(job.fit.confidence(), 0.9);
  }
}

TEST(PaceTest, WhatOthersAreSaidToReachAndTheJobDoesNotIsNotBelieved) {
  const JobSpeed truth{.compute_ceiling = 100, .rate_per_thread = 100};
  const Grant grant{.threads = 8};
  const Pace claimed{.offered = 1e6, .reached = 1e6, .ceiling = 1e6};
  JobFit fit(0);

  for (int i = 0; i < 20; ++i) {
    fit.observe(report_of(truth, grant, 100, 1), grant, {.elsewhere = claimed});
  }

  EXPECT_LE(fit.speed(claimed.ceiling).compute_ceiling, 110);
}

}  // namespace
}  // namespace leat
