// The places of AWS's tools, asked in their order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

/// The outcome of asking one place, for people.
struct LinkReport {
  enum class Outcome : std::uint8_t { kFound, kNothing, kFailed, kNotAsked };
  std::string name;
  Outcome outcome = Outcome::kNotAsked;
  std::string why;  ///< Empty where found.
};

/// Asks places in turn. The first that has credentials wins and, from then on,
/// is the only one asked: a job does not become somebody else on the way. One
/// that fails ends the search: it was meant.
///
/// Threads: one at a time; reports() any.
class CredentialChain final : public CredentialProvider {
 public:
  /// `environment`: which of the links asks a place that cannot change.
  explicit CredentialChain(
      std::vector<std::unique_ptr<CredentialProvider>> links,
      std::optional<std::size_t> environment = std::nullopt);

  std::string name() const override { return "the AWS credential chain"; }
  bool is_local() const override;

  /// Errors:
  ///   kPermissionDenied  no place has any; the message names each and why
  ///   what the place that failed said, with why those before it had none
  Result<CredentialAnswer> fetch(std::stop_token stop) override;

  /// Asks as long as no more than memory and files is needed. Nullopt if it
  /// takes more. Errors: as fetch()
  Result<std::optional<TimedCredentials>> fetch_locally();

  /// True if what answered is the environment, which never says anything else.
  bool is_constant() const { return answered_ && *answered_ == environment_; }

  /// The outcomes of the last fetch, in the order of asking.
  std::vector<LinkReport> reports() const;

 private:
  Result<CredentialAnswer> ask(std::size_t link, const std::stop_token& stop);
  Error nobody_has_any() const;

  const std::vector<std::unique_ptr<CredentialProvider>> links_;
  const std::optional<std::size_t> environment_;
  std::optional<std::size_t> answered_;

  mutable Mutex mutex_;
  std::vector<LinkReport> reports_ LEAT_GUARDED_BY(mutex_);
};

struct ChainOptions {
  /// As the user named it. Meant, so it goes before the environment, which is
  /// then not asked; as awscli has it.
  std::string profile;
  std::string region;
  std::string helper;
};

/// Environment, web identity, profile, container, instance.
std::unique_ptr<CredentialChain> default_credential_chain(
    const ChainOptions& options, const AwsProfile& profile,
    const CredentialTools& tools);

}  // namespace leat
