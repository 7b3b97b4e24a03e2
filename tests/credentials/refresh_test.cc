// Whole epochs with credentials that end every few seconds, from each place
// that gives them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <thread>
#include <vector>

#include "leat/base/clock.h"
#include "leat/store/s3/credentials/process.h"
#include "tests/credentials/credential_world.h"

namespace leat {
namespace {

using leat::testing::Variables;

/// A place, and the environment that makes it the one that answers.
struct Link {
  const char* name;
  std::function<Variables(const CredentialWorld&)> variables;
};

Variables with_config(const CredentialWorld& world, const std::string& config) {
  world.write(".aws/config", config);
  return {};
}

std::string source_profile() {
  return fmt::format(
      "[profile source]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
      leat::testing::kSourceKeyId, leat::testing::kSourceSecret);
}

const Link kLinks[] = {
    {"credential_process",
     [](const CredentialWorld& world) {
       return with_config(
           world, "[default]\ncredential_process = " +
                      print_command(world.issuer_url("/process")) + "\n");
     }},
    {"helper for SSO",
     [](const CredentialWorld& world) {
       with_config(world, "[default]\nsso_session = corp\n");
       // The shell drops the --profile that is added.
       return Variables{
           {"LEAT_CREDENTIAL_HELPER",
            fmt::format("/bin/sh -c '{}'",
                        print_command(world.issuer_url("/process")))}};
     }},
    {"role of a profile",
     [](const CredentialWorld& world) {
       with_config(world, source_profile() +
                              "[default]\nrole_arn = arn:r\n"
                              "source_profile = source\n");
       return Variables{{"AWS_ENDPOINT_URL_STS", world.issuer_url()}};
     }},
    {"web identity",
     [](const CredentialWorld& world) {
       return Variables{{"AWS_ENDPOINT_URL_STS", world.issuer_url()},
                        {"AWS_ROLE_ARN", "arn:r"},
                        {"AWS_WEB_IDENTITY_TOKEN_FILE",
                         world.write("jwt", leat::testing::kWebIdentityToken)}};
     }},
    {"container, ECS",
     [](const CredentialWorld& world) {
       return Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI",
                         world.issuer_url("/container")},
                        {"AWS_CONTAINER_AUTHORIZATION_TOKEN",
                         std::string(leat::testing::kContainerToken)}};
     }},
    {"container, EKS",
     [](const CredentialWorld& world) {
       return Variables{{"AWS_CONTAINER_CREDENTIALS_FULL_URI",
                         world.issuer_url("/container")},
                        {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                         world.write("token", leat::testing::kContainerToken)}};
     }},
    {"instance",
     [](const CredentialWorld& world) {
       return Variables{
           {"AWS_EC2_METADATA_DISABLED", "false"},
           {"AWS_EC2_METADATA_SERVICE_ENDPOINT", world.issuer_url()}};
     }},
};

/// As many as there must be, less two for a machine that is slow.
std::size_t fewest_refreshes(const WorldTimes& pace) {
  // Told in whole seconds, they last up to one more.
  const auto longest = pace.lifetime + std::chrono::seconds(1);
  return static_cast<std::size_t>(pace.epoch / longest) - 2;
}

/// How long this process was once kept from running, while this lives.
class Stalls {
 public:
  Nanoseconds longest() const { return Nanoseconds(longest_.load()); }
  /// A request that is signed and then held up longer than its keys last is
  /// late through no fault of ours.
  bool are_short() const { return longest() < std::chrono::milliseconds(200); }

 private:
  std::atomic<Nanoseconds::rep> longest_ = 0;
  std::jthread watch_{[this](const std::stop_token& stop) {
    TimePoint last = SteadyClock().now();
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const TimePoint now = SteadyClock().now();
      longest_ = std::max<Nanoseconds::rep>(longest_, (now - last).count());
      last = now;
    }
  }};
};

TEST(CredentialRefreshTest, EveryLinkCarriesAnEpochAcrossManyExpiries) {
  const WorldTimes at = pace();
  const Stalls stalls;
  std::vector<std::unique_ptr<CredentialWorld>> worlds;
  std::vector<std::future<Result<EpochStats>>> epochs;
  for (const Link& link : kLinks) {
    worlds.push_back(std::make_unique<CredentialWorld>(at));
    const CredentialWorld& world = *worlds.back();
    Variables variables = link.variables(world);
    variables.merge(world.variables());
    epochs.push_back(std::async(std::launch::async, [variables] {
      return run_epoch("s3://data/train", {}, fake_env(variables));
    }));
  }
  const auto expected =
      run_epoch((worlds[0]->root() / "served/data/train").string(), {},
                fake_env(worlds[0]->variables()));
  ASSERT_TRUE(expected) << expected.error().message();

  for (std::size_t i = 0; i < worlds.size(); ++i) {
    SCOPED_TRACE(kLinks[i].name);
    const Result<EpochStats> seen = epochs[i].get();
    ASSERT_TRUE(seen) << seen.error().message();
    EXPECT_EQ(seen->content_hash, expected->content_hash);
    EXPECT_EQ(seen->order_hash, expected->order_hash);
    if (stalls.are_short()) {
      EXPECT_EQ(seen->retried, 0u);
      EXPECT_EQ(worlds[i]->late(), 0u) << "requests with an expired token";
    }
    EXPECT_GE(seen->elapsed, at.epoch * 8 / 10);
    EXPECT_EQ(worlds[i]->issuer().refused(), 0u);
    EXPECT_EQ(worlds[i]->issuer().overlapping(), 0u);
    EXPECT_GE(worlds[i]->issuer().given(), fewest_refreshes(at));
    std::printf("%-20s %3zu credentials in %.1f s, %zu late, %zu overlapping\n",
                kLinks[i].name, worlds[i]->issuer().given(),
                std::chrono::duration<double>(seen->elapsed).count(),
                worlds[i]->late(), worlds[i]->issuer().overlapping());
  }
}

TEST(CredentialRefreshTest, RanksOfANodeTakeTurns) {
  constexpr int kRanks = 3;
  const Stalls stalls;
  CredentialWorld world(
      {.lifetime = std::chrono::seconds(2), .epoch = std::chrono::seconds(6)},
      /*takes=*/std::chrono::milliseconds(150));
  const std::vector<std::string> command = {
      "/proc/self/exe", "--epoch", world.bucket_url(), world.issuer_url(),
      (world.root() / "cache").string()};
  std::vector<std::future<Result<ProcessOutput>>> ranks;
  for (int i = 0; i < kRanks; ++i) {
    ranks.push_back(std::async(std::launch::async, [&command] {
      return run_process(command, {.timeout = std::chrono::seconds(60)}, {});
    }));
  }
  const auto expected = run_epoch(
      (world.root() / "served/data/train").string(), {},
      fake_env({{"LEAT_CACHE_DIR", (world.root() / "own").string()}}));
  ASSERT_TRUE(expected) << expected.error().message();

  for (auto& rank : ranks) {
    const auto ran = rank.get();
    ASSERT_TRUE(ran) << ran.error().message();
    EXPECT_EQ(ran->exit_status, 0) << ran->errors;
    EXPECT_EQ(ran->output, expected->content_hash.hex());
  }
  if (stalls.are_short()) {
    EXPECT_EQ(world.late(), 0u);
  }
  EXPECT_EQ(world.issuer().overlapping(), 0u);
  EXPECT_GE(world.issuer().given(), 2u * kRanks);
}

}  // namespace
}  // namespace leat
