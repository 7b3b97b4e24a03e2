#include "leat/store/s3/credentials/web_identity.h"

#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/small_file.h"

namespace leat {
namespace {

/// STS takes no longer one.
constexpr std::size_t kMostTokenBytes = 20'000;

class EnvironmentWebIdentity final : public CredentialProvider {
 public:
  EnvironmentWebIdentity(Result<StsPlace> sts, CredentialTools tools)
      : sts_(std::move(sts)), tools_(std::move(tools)) {}

  std::string name() const override {
    return "web identity in the environment";
  }
  bool is_local() const override {
    return !value_of(tools_.env, "AWS_WEB_IDENTITY_TOKEN_FILE");
  }

  Result<CredentialAnswer> fetch(std::stop_token stop) override {
    const auto file = value_of(tools_.env, "AWS_WEB_IDENTITY_TOKEN_FILE");
    if (!file) {
      return CredentialAnswer::none("AWS_WEB_IDENTITY_TOKEN_FILE is not set");
    }
    RoleRequest role;
    role.role_arn = value_of(tools_.env, "AWS_ROLE_ARN").value_or("");
    role.session_name =
        value_of(tools_.env, "AWS_ROLE_SESSION_NAME").value_or("");
    if (role.role_arn.empty()) {
      return denied(
          "AWS_WEB_IDENTITY_TOKEN_FILE is set and AWS_ROLE_ARN is not; set "
          "both or neither");
    }
    if (!sts_) return sts_.error();
    LEAT_TRY(TimedCredentials found,
             exchange_web_identity(*file, role, *sts_, tools_, stop));
    return CredentialAnswer{std::move(found)};
  }

 private:
  const Result<StsPlace> sts_;
  const CredentialTools tools_;
};

}  // namespace

Result<TimedCredentials> exchange_web_identity(const std::string& token_file,
                                               const RoleRequest& role,
                                               const StsPlace& sts,
                                               const CredentialTools& tools,
                                               const std::stop_token& stop) {
  LEAT_TRY(std::optional<std::string> token,
           read_small_file(token_file, kMostTokenBytes));
  while (token && (token->ends_with('\n') || token->ends_with('\r'))) {
    token->pop_back();
  }
  if (!token || token->empty()) {
    return invalid(
        "the web identity token file {} is {}; check "
        "AWS_WEB_IDENTITY_TOKEN_FILE or the profile",
        token_file, token ? "empty" : "not there");
  }
  return assume_role_with_web_identity(role, *token, sts, tools, stop);
}

std::unique_ptr<CredentialProvider> environment_web_identity(
    Result<StsPlace> sts, CredentialTools tools) {
  return std::make_unique<EnvironmentWebIdentity>(std::move(sts),
                                                  std::move(tools));
}

}  // namespace leat
