#include "leat/store/s3/credentials/static_keys.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"

namespace leat {
namespace {

Error half_of_it(std::string_view where, std::string_view has,
                 std::string_view lacks) {
  return denied("{} has {} but not {}; set both or neither", where, has, lacks);
}

struct KeyNames {
  std::string_view where, id, secret;
};

Result<std::optional<Credentials>> put_together(
    const KeyNames& names, std::optional<std::string> id,
    std::optional<std::string> secret, std::optional<std::string> token) {
  if (!id && !secret) return std::optional<Credentials>();
  if (!secret) return half_of_it(names.where, names.id, names.secret);
  if (!id) return half_of_it(names.where, names.secret, names.id);
  Credentials found{*std::move(id), *std::move(secret),
                    std::move(token).value_or("")};
  LEAT_TRY_VOID(check_keys(found, names.where));
  return std::optional<Credentials>(std::move(found));
}

class EnvironmentKeys final : public CredentialProvider {
 public:
  explicit EnvironmentKeys(Env env) : env_(std::move(env)) {}

  std::string name() const override { return "the environment"; }
  bool is_local() const override { return true; }

  Result<CredentialAnswer> fetch(std::stop_token) override {
    constexpr KeyNames kNames = {"the environment", "AWS_ACCESS_KEY_ID",
                                 "AWS_SECRET_ACCESS_KEY"};
    LEAT_TRY(auto found, put_together(kNames, value_of(env_, kNames.id),
                                      value_of(env_, kNames.secret),
                                      value_of(env_, "AWS_SESSION_TOKEN")));
    if (!found) {
      return CredentialAnswer::none("AWS_ACCESS_KEY_ID is not set");
    }
    return CredentialAnswer{TimedCredentials{*std::move(found)}};
  }

 private:
  const Env env_;
};

}  // namespace

Result<void> check_keys(const Credentials& keys, std::string_view where) {
  if (is_header_word(keys.access_key_id) &&
      is_header_word(keys.secret_access_key) &&
      is_header_word(keys.session_token)) {
    return {};
  }
  return denied(
      "the AWS credentials in {} hold a blank, a line break or a byte that is "
      "not ASCII; copy them again",
      where);
}

std::unique_ptr<CredentialProvider> environment_keys(Env env) {
  return std::make_unique<EnvironmentKeys>(std::move(env));
}

Result<std::optional<Credentials>> keys_of(const AwsProfile& profile) {
  const std::string where = fmt::format("profile '{}'", profile.name);
  const KeyNames names = {where, "aws_access_key_id", "aws_secret_access_key"};
  return put_together(names, profile.value(names.id),
                      profile.value(names.secret),
                      profile.value("aws_session_token"));
}

}  // namespace leat
