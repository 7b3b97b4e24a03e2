// Following a profile: each step is a profile name, and a role leads to the
// profile of its source. The way is remembered, so that it cannot be a circle.

#include "leat/store/s3/credentials/profile_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/store/s3/credentials/container.h"
#include "leat/store/s3/credentials/credential_process.h"
#include "leat/store/s3/credentials/imds.h"
#include "leat/store/s3/credentials/process.h"
#include "leat/store/s3/credentials/static_keys.h"
#include "leat/store/s3/credentials/sts.h"
#include "leat/store/s3/credentials/web_identity.h"

namespace leat {
namespace {

/// How a profile gets its credentials.
enum class Way {
  kNone,
  kRole,
  kWebIdentity,
  kKeys,
  kProcess,
  kHelper,  ///< SSO, `aws login`, MFA.
};

/// Keys that only the helper can handle.
constexpr std::array<std::string_view, 3> kForHelper = {
    "sso_session", "sso_start_url", "login_session"};

bool has_keys(const AwsProfile& profile) {
  return profile.value("aws_access_key_id") ||
         profile.value("aws_secret_access_key");
}

Way way_of(const AwsProfile& profile) {
  if (profile.value("role_arn")) {
    if (profile.value("web_identity_token_file")) return Way::kWebIdentity;
    return profile.value("mfa_serial") ? Way::kHelper : Way::kRole;
  }
  if (has_keys(profile)) return Way::kKeys;
  for (const std::string_view name : kForHelper) {
    if (profile.value(name)) return Way::kHelper;
  }
  return profile.value("credential_process") ? Way::kProcess : Way::kNone;
}

/// Follows a profile once.
class Walk {
 public:
  Walk(const ProfileLinkOptions& options, const CredentialTools& tools,
       const std::stop_token& stop)
      : options_(options), tools_(tools), stop_(stop) {}

  Result<CredentialAnswer> follow(const AwsProfile& profile);

 private:
  Result<CredentialAnswer> take(const AwsProfile& profile, Way way);
  Result<Credentials> source_of(const AwsProfile& profile);
  Result<Credentials> of_source_profile(const AwsProfile& profile,
                                        const std::string& name);
  Result<Credentials> of_credential_source(const AwsProfile& profile,
                                           const std::string& name);
  Result<CredentialAnswer> take_keys(const AwsProfile& profile);
  Result<TimedCredentials> take_role(const AwsProfile& profile);
  Result<TimedCredentials> take_web_identity(const AwsProfile& profile);
  Result<TimedCredentials> run_process(const AwsProfile& profile);
  Result<TimedCredentials> ask_helper(const AwsProfile& profile);
  Result<RoleRequest> role_of(const AwsProfile& profile);

  const ProfileLinkOptions& options_;
  const CredentialTools& tools_;
  const std::stop_token& stop_;
  std::vector<std::string> visited_;
};

Result<CredentialAnswer> Walk::follow(const AwsProfile& profile) {
  visited_.push_back(profile.name);
  const bool is_source = visited_.size() > 1;
  Result<CredentialAnswer> answer = take(profile, way_of(profile));
  // The caller has named the first one.
  if (answer || !is_source) return answer;
  return std::move(answer).error().while_doing(
      fmt::format("source_profile '{}'", profile.name));
}

Result<CredentialAnswer> Walk::take(const AwsProfile& profile, Way way) {
  const auto found =
      [](Result<TimedCredentials> got) -> Result<CredentialAnswer> {
    if (!got) return std::move(got).error();
    return CredentialAnswer{*std::move(got)};
  };
  switch (way) {
    case Way::kRole:
      return found(take_role(profile));
    case Way::kWebIdentity:
      return found(take_web_identity(profile));
    case Way::kKeys:
      return take_keys(profile);
    case Way::kProcess:
      return found(run_process(profile));
    case Way::kHelper:
      return found(ask_helper(profile));
    case Way::kNone:
      break;
  }
  return CredentialAnswer::none(fmt::format("profile '{}' has none in {}",
                                            profile.name, profile.looked_in));
}

/// REQUIRES: has_keys(profile)
Result<Credentials> written_keys(const AwsProfile& profile) {
  LEAT_TRY(auto keys, keys_of(profile));
  if (keys) return *std::move(keys);
  return denied("it has no keys");
}

Result<CredentialAnswer> Walk::take_keys(const AwsProfile& profile) {
  LEAT_TRY(Credentials keys, written_keys(profile));
  return CredentialAnswer{TimedCredentials{std::move(keys)}};
}

Result<RoleRequest> Walk::role_of(const AwsProfile& profile) {
  RoleRequest role;
  role.role_arn = *profile.value("role_arn");
  role.session_name = profile.value("role_session_name").value_or("");
  role.external_id = profile.value("external_id").value_or("");
  LEAT_TRY(role.duration_seconds,
           parse_duration_seconds(profile.value("duration_seconds")));
  return role;
}

Result<TimedCredentials> Walk::take_role(const AwsProfile& profile) {
  LEAT_TRY(const RoleRequest role, role_of(profile));
  LEAT_TRY(const StsPlace sts, sts_place(options_.region, profile, tools_.env));
  LEAT_TRY(const Credentials source, source_of(profile));
  auto granted = assume_role(role, source, sts, tools_, stop_);
  if (granted) return granted;
  return std::move(granted).error().while_doing("assuming " + role.role_arn);
}

Result<TimedCredentials> Walk::take_web_identity(const AwsProfile& profile) {
  LEAT_TRY(const RoleRequest role, role_of(profile));
  LEAT_TRY(const StsPlace sts, sts_place(options_.region, profile, tools_.env));
  return exchange_web_identity(*profile.value("web_identity_token_file"), role,
                               sts, tools_, stop_);
}

Result<Credentials> Walk::source_of(const AwsProfile& profile) {
  const auto of_profile = profile.value("source_profile");
  const auto of_place = profile.value("credential_source");
  if (of_profile && of_place) {
    return denied("it has source_profile and credential_source; keep one");
  }
  if (of_profile) return of_source_profile(profile, *of_profile);
  if (of_place) return of_credential_source(profile, *of_place);
  return denied(
      "it has role_arn, but neither source_profile nor credential_source nor "
      "web_identity_token_file; say with whose credentials to assume the role");
}

Result<Credentials> Walk::of_source_profile(const AwsProfile& profile,
                                            const std::string& name) {
  if (name == profile.name && has_keys(profile)) return written_keys(profile);
  if (std::find(visited_.begin(), visited_.end(), name) != visited_.end()) {
    return denied("its source_profile '{}' leads back to itself", name);
  }
  LEAT_TRY(const AwsProfile source, load_aws_profile(name, tools_.env));
  // A source that has keys is asked for them, though it may be a role too.
  Result<CredentialAnswer> answer =
      has_keys(source) ? take_keys(source) : follow(source);
  if (!answer) return std::move(answer).error();
  if (!answer->found) {
    return denied("its source_profile '{}' has no credentials in {}", name,
                  source.looked_in);
  }
  return std::move(answer->found->keys);
}

Result<Credentials> Walk::of_credential_source(const AwsProfile& profile,
                                               const std::string& name) {
  std::unique_ptr<CredentialProvider> place;
  if (name == "Environment") place = environment_keys(tools_.env);
  if (name == "EcsContainer") place = container_role(tools_);
  if (name == "Ec2InstanceMetadata") {
    place = instance_role(imds_options(profile, tools_.env), tools_);
  }
  if (!place) {
    return denied(
        "its credential_source is none of Environment, Ec2InstanceMetadata and "
        "EcsContainer");
  }
  Result<CredentialAnswer> answer = place->fetch(stop_);
  if (!answer) {
    return std::move(answer).error().while_doing("credential_source " + name);
  }
  if (!answer->found) {
    return denied("credential_source {}: {}", name, answer->why_not);
  }
  return std::move(answer->found->keys);
}

Result<TimedCredentials> Walk::run_process(const AwsProfile& profile) {
  Result<TimedCredentials> found =
      Error(ErrorCode::kInternal, "credential_process was not run");
  auto words = split_command(*profile.value("credential_process"));
  if (words) {
    found = ask_process(*words, tools_, stop_);
  } else {
    found = std::move(words).error();
  }
  if (found) return found;
  return std::move(found).error().while_doing("credential_process");
}

Result<TimedCredentials> Walk::ask_helper(const AwsProfile& profile) {
  const std::string helper =
      !options_.helper.empty()
          ? options_.helper
          : value_of(tools_.env, "LEAT_CREDENTIAL_HELPER").value_or("");
  const std::string_view what =
      profile.value("mfa_serial") ? "MFA (mfa_serial)" : "SSO or `aws login`";
  if (helper.empty()) {
    return denied(
        "it needs {}, which goes through botocore: install it (pip install "
        "botocore) and use leat from Python, or run: eval \"$(aws configure "
        "export-credentials --profile {} --format env)\"",
        what, profile.name);
  }
  LEAT_TRY(std::vector<std::string> words, split_command(helper));
  words.insert(words.end(), {"--profile", profile.name});
  auto found = ask_process(words, tools_, stop_);
  if (found) return found;
  return std::move(found).error().while_doing(
      fmt::format("{} through botocore", what));
}

class ProfileLink final : public CredentialProvider {
 public:
  ProfileLink(ProfileLinkOptions options, const AwsProfile& now,
              CredentialTools tools)
      : options_(std::move(options)),
        tools_(std::move(tools)),
        name_(now.name),
        is_local_(way_of(now) == Way::kKeys || way_of(now) == Way::kNone) {}

  std::string name() const override {
    return fmt::format("profile '{}'", name_);
  }
  bool is_local() const override { return is_local_; }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    LEAT_TRY(const AwsProfile profile,
             load_aws_profile(options_.profile, tools_.env));
    return Walk(options_, tools_, stop).follow(profile);
  }

 private:
  const ProfileLinkOptions options_;
  const CredentialTools tools_;
  const std::string name_;
  const bool is_local_;
};

}  // namespace

std::unique_ptr<CredentialProvider> profile_link(ProfileLinkOptions options,
                                                 const AwsProfile& now,
                                                 CredentialTools tools) {
  return std::make_unique<ProfileLink>(std::move(options), now,
                                       std::move(tools));
}

}  // namespace leat
