// s3://bucket/prefix: signed requests over HTTP.

#include <utility>

#include "leat/engine/schemes/schemes.h"
#include "leat/store/s3/diagnosis.h"
#include "leat/store/s3/s3_store.h"
#include "leat/store/s3/settings.h"

namespace leat {
namespace {

constexpr SchemeOption kOptions[] = {
    {"region", "default: the environment, the profile"},
    {"profile", "the profile in the AWS configuration files"}};

S3Options s3_options(const StoreOptions& options) {
  S3Options asked;
  asked.endpoint_url = options.endpoint_url;
  asked.region = options.option_of_scheme("region");
  asked.profile = options.option_of_scheme("profile");
  asked.no_sign_request = options.no_sign_request;
  asked.requester_pays = options.requester_pays;
  asked.credential_helper = options.credential_helper;
  asked.ca_bundle = options.ca_bundle;
  asked.max_attempts = options.max_attempts;
  return asked;
}

Result<Driver> open_s3(const Url& url, const StoreOptions& options,
                       const Env& env, Metrics* metrics) {
  LEAT_TRY(S3Settings settings,
           resolve_s3_settings(url.authority, s3_options(options), env));
  Driver driver = driver_at(url, url.path, settings.base_url);
  driver.max_attempts = settings.max_attempts;
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store =
      open_s3_store(url.authority, std::move(settings), std::move(http));
  return driver;
}

std::vector<Diagnosis> diagnose_s3(const Url& url, const StoreOptions& options,
                                   const Env& env,
                                   const std::stop_token& stop) {
  const S3Options asked = s3_options(options);
  std::vector<Diagnosis> found;
  found.push_back(diagnose_credentials(asked, env, stop));
  // Anything that cannot be resolved is reported when the store is opened.
  const auto facts = network_facts(url.authority, asked, env, stop);
  if (!facts) return found;
  for (Diagnosis& judged : judge_network(*facts)) {
    found.push_back(std::move(judged));
  }
  return found;
}

}  // namespace

constinit const Scheme kS3Scheme = {"s3", open_s3, diagnose_s3, kOptions};

}  // namespace leat
