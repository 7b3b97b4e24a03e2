// A bucket that lets in users with credentials of a fake issuer, until they
// end; and a loader's epoch over it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "leat/bucket/bucket_server.h"
#include "leat/engine/loader/loader.h"
#include "leat/store/s3/credentials/testing/aws_answers.h"
#include "leat/store/s3/credentials/testing/fake_issuer.h"

namespace leat {

/// How long credentials and epochs last.
struct WorldTimes {
  std::chrono::milliseconds lifetime{2000};
  std::chrono::milliseconds epoch{15'000};
};

/// The pace of the suite; with LEAT_WHOLE_CREDENTIAL_EPOCH=1, credentials of 20
/// s and an epoch of three minutes.
WorldTimes pace();

/// The bucket `data` of 240 small objects, and one issuer.
class CredentialWorld {
 public:
  static constexpr std::uint64_t kSamples = 240;
  static constexpr std::uint64_t kInFlight = 4;

  /// `takes` is how long the issuer takes to give.
  explicit CredentialWorld(WorldTimes pace,
                           std::chrono::milliseconds takes = {});
  ~CredentialWorld();
  CredentialWorld(const CredentialWorld&) = delete;
  CredentialWorld& operator=(const CredentialWorld&) = delete;

  testing::FakeIssuer& issuer() { return issuer_; }
  std::string issuer_url(std::string_view target = "") const {
    return issuer_server_.url(target);
  }
  std::string bucket_url() const { return bucket_->url(); }
  /// Requests that came with credentials that had ended.
  std::size_t late() const { return late_; }

  /// Writes a file of the home folder; its path.
  std::string write(const std::string& name, std::string_view text) const;
  const std::filesystem::path& root() const { return root_; }

  /// A home folder, a cache folder, this bucket; no metadata service.
  testing::Variables variables() const;

 private:
  std::filesystem::path root_;
  testing::FakeIssuer issuer_;
  testing::ScriptedServer issuer_server_;
  std::atomic<std::size_t> late_ = 0;
  std::unique_ptr<BucketServer> bucket_;
};

/// Reads one epoch of `url` with what `env` says about who is asking.
Result<EpochStats> run_epoch(const std::string& url, const StoreOptions& store,
                             const Env& env);

/// The command that prints what stands at `url`, by this very program.
std::string print_command(const std::string& url);

}  // namespace leat
