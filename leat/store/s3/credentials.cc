#include "leat/store/s3/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace leat {
namespace {

/// What a profile may say instead of keys, which is not read here yet.
constexpr std::array<std::string_view, 6> kOtherWays = {
    "credential_process", "sso_session",   "sso_start_url",
    "role_arn",           "login_session", "web_identity_token_file"};

Error half_of_it(std::string_view where, std::string_view has,
                 std::string_view lacks) {
  return Error(ErrorCode::kPermissionDenied,
               fmt::format("{} has {} but not {}; set both or neither", where,
                           has, lacks));
}

/// Both go into a header, so neither may hold what could end it.
bool is_clean(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<std::optional<AwsCredentials>> put_together(
    std::string_view where, std::span<const std::string_view, 2> names,
    std::optional<std::string> id, std::optional<std::string> secret,
    std::optional<std::string> token) {
  if (!id && !secret) return std::optional<AwsCredentials>();
  if (!secret) return half_of_it(where, names[0], names[1]);
  if (!id) return half_of_it(where, names[1], names[0]);
  AwsCredentials found{*std::move(id), *std::move(secret),
                       std::move(token).value_or("")};
  if (!is_clean(found.access_key_id) || !is_clean(found.secret_access_key) ||
      !is_clean(found.session_token)) {
    return Error(ErrorCode::kPermissionDenied,
                 fmt::format("the AWS credentials in {} hold a blank, a line "
                             "break or a byte that is not ASCII; copy them "
                             "again",
                             where));
  }
  return std::optional<AwsCredentials>(std::move(found));
}

}  // namespace

CredentialsSource environment_credentials(Env env) {
  return {"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
          [env = std::move(env)] {
            constexpr std::array<std::string_view, 2> kNames = {
                "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"};
            return put_together(
                "the environment", kNames, value_of(env, kNames[0]),
                value_of(env, kNames[1]), value_of(env, "AWS_SESSION_TOKEN"));
          }};
}

CredentialsSource profile_credentials(const AwsProfile& profile) {
  return {fmt::format("profile '{}' in {}", profile.name, profile.looked_in),
          [&profile]() -> Result<std::optional<AwsCredentials>> {
            constexpr std::array<std::string_view, 2> kNames = {
                "aws_access_key_id", "aws_secret_access_key"};
            const std::string where = fmt::format("profile '{}'", profile.name);
            LEAT_TRY(auto found,
                     put_together(where, kNames, profile.value(kNames[0]),
                                  profile.value(kNames[1]),
                                  profile.value("aws_session_token")));
            if (found) return found;
            for (const std::string_view way : kOtherWays) {
              if (!profile.value(way)) continue;
              return Error(
                  ErrorCode::kPermissionDenied,
                  fmt::format("{} gets its credentials by {}, which is not "
                              "supported; run: eval \"$(aws configure "
                              "export-credentials --profile {} --format env)\"",
                              where, way, profile.name));
            }
            return found;
          }};
}

Result<AwsCredentials> find_credentials(
    std::span<const CredentialsSource> sources) {
  std::string tried;
  for (const CredentialsSource& source : sources) {
    LEAT_TRY(auto found, source.find());
    if (found) return *std::move(found);
    tried.append(tried.empty() ? "" : "; ").append(source.name);
  }
  return Error(
      ErrorCode::kPermissionDenied,
      fmt::format("no AWS credentials; tried {}. Set AWS_ACCESS_KEY_ID and "
                  "AWS_SECRET_ACCESS_KEY or run `aws configure`; for a public "
                  "bucket use no_sign_request (--no-sign-request)",
                  tried));
}

}  // namespace leat
