#include "leat/store/gcs/settings.h"

#include <array>
#include <utility>

#include "leat/base/errors.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/node_turn.h"
#include "leat/store/cloud/token.h"
#include "leat/store/cloud/uri.h"
#include "leat/store/gcs/token_sources.h"

namespace leat {
namespace {

constexpr std::string_view kService = "https://storage.googleapis.com";

Result<void> check_bucket(std::string_view bucket) {
  if (bucket.size() < 3 || bucket.size() > 222 || bucket == ".." ||
      !consists_of(bucket, "._-")) {
    return invalid(
        "'{}' is no bucket name: 3 to 222 letters, digits, '.', '_' and '-'",
        uri_encode(bucket.substr(0, 222), Slash::kKeep));
  }
  return {};
}

/// STORAGE_EMULATOR_HOST may leave the scheme out.
std::optional<ConfiguredEndpoint> emulator(const Env& env) {
  auto host = value_of(env, "STORAGE_EMULATOR_HOST");
  if (!host) return std::nullopt;
  if (host->find("://") == std::string::npos) host->insert(0, "http://");
  return ConfiguredEndpoint{*std::move(host), "STORAGE_EMULATOR_HOST"};
}

/// The keys that gsutil's library or other loaders take from the environment.
Result<std::optional<Credentials>> find_hmac_keys(const Env& env) {
  constexpr std::array<std::array<const char*, 2>, 2> kNames = {
      {{"GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY"},
       {"GCS_KEY", "GCS_SECRET"}}};
  for (const auto& [id_name, secret_name] : kNames) {
    const auto id = value_of(env, id_name);
    const auto secret = value_of(env, secret_name);
    if (!id && !secret) continue;
    if (!id || !secret) {
      return invalid("{} is set and {} is not; set both or neither",
                     id ? id_name : secret_name, id ? secret_name : id_name);
    }
    if (!is_header_word(*id) || !is_header_word(*secret)) {
      return invalid(
          "{} or {} holds a blank, a line break or a byte that is not ASCII; "
          "copy them again",
          id_name, secret_name);
    }
    return std::optional(Credentials{*id, *secret, ""});
  }
  return std::optional<Credentials>();
}

/// The project that pays: the environment's, else that of the credentials.
Result<std::string> find_user_project(const Env& env, std::string of_file) {
  std::string project = std::move(of_file);
  if (auto named = value_of(env, "GOOGLE_CLOUD_PROJECT")) project = *named;
  if (auto named = value_of(env, "GOOGLE_CLOUD_QUOTA_PROJECT")) {
    project = *named;
  }
  if (project.empty() || !consists_of(project, "-:._")) {
    return invalid(
        "requester_pays (--requester-pays) needs the project that pays; set "
        "GOOGLE_CLOUD_PROJECT to its id");
  }
  return project;
}

}  // namespace

Result<GcsSettings> resolve_gcs_settings(std::string_view bucket,
                                         const GcsOptions& options,
                                         const CredentialTools& tools) {
  LEAT_TRY_VOID(check_bucket(bucket));
  GcsSettings settings;
  settings.ca_bundle = options.ca_bundle;
  const auto emulated = emulator(tools.env);
  ConfiguredEndpoint place{std::string(kService), "Google's"};
  if (emulated) place = *emulated;
  if (!options.endpoint_url.empty()) {
    place = {options.endpoint_url, "endpoint_url (--endpoint-url)"};
  }
  LEAT_TRY(settings.endpoint, parse_endpoint(place));

  std::string project;
  // An emulator asks nobody who they are.
  const bool is_emulated = emulated && options.endpoint_url.empty();
  if (!options.no_sign_request && !is_emulated) {
    LEAT_TRY(settings.hmac_keys, find_hmac_keys(tools.env));
    if (!settings.hmac_keys) {
      LEAT_TRY_VOID(check_token_url(settings.endpoint.url(), "the endpoint"));
      LEAT_TRY(TokenSource source, find_token_source(tools));
      settings.provider = std::move(source.provider);
      settings.turn_path = node_turn_path(tools.env);
      project = std::move(source.project);
    }
  }
  if (options.requester_pays) {
    LEAT_TRY(settings.user_project,
             find_user_project(tools.env, std::move(project)));
  }
  return settings;
}

}  // namespace leat
