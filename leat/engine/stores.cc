#include "leat/engine/stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "leat/base/check.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/ledger.h"
#include "leat/runtime/retry_policy.h"
#include "leat/store/file/file_store.h"
#include "leat/store/http/http_client.h"
#include "leat/store/http/http_store.h"
#include "leat/store/layers/joined_store.h"
#include "leat/store/layers/limited_store.h"
#include "leat/store/layers/noted_store.h"
#include "leat/store/layers/retrying_store.h"
#include "leat/store/s3/diagnosis.h"
#include "leat/store/s3/s3_store.h"
#include "leat/store/s3/settings.h"
#include "leat/store/url.h"

namespace leat {
namespace {

/// A driver, and the facts about it for the layers around it.
struct Driver {
  std::unique_ptr<Store> store;
  std::string prefix;
  std::string identity;
  std::string endpoint;
  std::optional<std::string> provider;
  std::uint32_t max_attempts = RetryOptions{}.max_attempts;
  /// Its client's notes of the server; null for files.
  std::shared_ptr<EndpointNotes> notes;
  /// True for any web server, which may bear few connections.
  bool is_plain_http = false;
};

/// Lists and writes are not limited by the window; they get connections too.
constexpr std::size_t kConnectionsBesideReads = 32;

HttpClientOptions http_options(const StoreOptions& options,
                               std::string ca_bundle,
                               std::shared_ptr<EndpointNotes> notes) {
  HttpClientOptions http;
  http.io_threads = options.io_threads;
  http.max_in_flight = std::max(options.max_in_flight, options.most_in_flight) +
                       kConnectionsBesideReads;
  http.ca_bundle = std::move(ca_bundle);
  http.notes = std::move(notes);
  return http;
}

S3Options s3_options(const StoreOptions& options) {
  S3Options asked;
  asked.endpoint_url = options.endpoint_url;
  asked.region = options.region;
  asked.profile = options.profile;
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
  Driver driver;
  driver.prefix = url.path;
  driver.identity = url.text() + "\n" + settings.base_url;
  driver.endpoint = settings.base_url;
  driver.provider = provider_at(settings.base_url);
  driver.max_attempts = settings.max_attempts;
  driver.notes = std::make_shared<EndpointNotes>();
  auto http = open_http_client(
      http_options(options, settings.ca_bundle, driver.notes), metrics);
  driver.store =
      open_s3_store(url.authority, std::move(settings), std::move(http));
  return driver;
}

/// Encodes characters that users write in URLs and HTTP does not take; existing
/// escapes stay.
std::string as_sent(std::string_view url) {
  constexpr std::string_view kUnsafe = "\"<>\\^`{|} ";
  std::string sent;
  for (const char c : url) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x7f || kUnsafe.find(c) != std::string_view::npos) {
      sent += fmt::format("%{:02X}", byte);
    } else {
      sent += c;
    }
  }
  return sent;
}

/// The prefix is part of the base: a URL is encoded, and keys are not.
Result<Driver> open_http(const Url& url, const StoreOptions& options,
                         Metrics* metrics) {
  Driver driver;
  driver.identity = url.text();
  driver.provider = provider_at(url.text());
  driver.notes = std::make_shared<EndpointNotes>();
  driver.is_plain_http = true;
  auto http = open_http_client(
      http_options(options, options.ca_bundle, driver.notes), metrics);
  LEAT_TRY(driver.store, open_http_store(as_sent(url.text()), std::move(http)));
  return driver;
}

Result<Driver> open_file(const Url& url, const Env& env) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(url.path, failed);
  std::string path = failed ? url.path : absolute.lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  Driver driver;
  driver.identity = "file://" + path;
  LEAT_TRY(driver.store, open_file_store(url.path));
  if (const auto notes = value_of(env, "LEAT_PROFILE_NOTES")) {
    driver.store = std::make_unique<NotedStore>(std::move(driver.store),
                                                std::move(path), *notes);
  }
  return driver;
}

Result<Driver> open_driver(const Url& url, const StoreOptions& options,
                           const Env& env, Metrics* metrics) {
  if (url.scheme == "s3") return open_s3(url, options, env, metrics);
  if (url.scheme == "http" || url.scheme == "https") {
    return open_http(url, options, metrics);
  }
  return open_file(url, env);
}

std::uint64_t draw_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// One window and one set of retries around any driver.
OpenedStore wrap(Driver driver, const StoreOptions& options, Metrics* metrics) {
  RetryOptions retries;
  retries.max_attempts =
      options.max_attempts != 0 ? options.max_attempts : driver.max_attempts;
  auto limited = std::make_unique<LimitedStore>(
      std::move(driver.store), options.max_in_flight, metrics,
      driver.is_plain_http ? driver.notes : nullptr);
  OpenedStore opened;
  opened.limited = limited.get();
  opened.store = std::make_unique<RetryingStore>(
      std::move(limited), retries, options.seed.value_or(draw_seed()), metrics,
      std::move(driver.notes));
  opened.prefix = std::move(driver.prefix);
  opened.identity = std::move(driver.identity);
  opened.endpoint = std::move(driver.endpoint);
  opened.provider = std::move(driver.provider);
  return opened;
}

Result<void> check(const StoreOptions& options) {
  if (options.max_in_flight != 0 && options.io_threads != 0) return {};
  return Error(ErrorCode::kInvalidArgument,
               "max_in_flight and io_threads must be at least 1");
}

}  // namespace

Result<OpenedStore> open_store(std::string_view url,
                               const StoreOptions& options, const Env& env,
                               Metrics* metrics) {
  LEAT_TRY(const Url parsed, parse_url(url));
  LEAT_TRY_VOID(check(options));
  LEAT_TRY(Driver driver, open_driver(parsed, options, env, metrics));
  OpenedStore opened = wrap(std::move(driver), options, metrics);
  opened.url = parsed.text();
  return opened;
}

Result<OpenedStore> open_joined_store(std::span<const StorePlace> places,
                                      const Env& env, Metrics* metrics) {
  LEAT_CHECK(!places.empty());
  Driver joined;
  std::vector<JoinedStore::Part> parts;
  for (const StorePlace& place : places) {
    LEAT_TRY_VOID(check(place.options));
    LEAT_TRY(const Url parsed, parse_url(place.url));
    LEAT_TRY(Driver driver, open_driver(parsed, place.options, env, metrics));
    joined.identity += driver.identity + "\n";
    joined.endpoint += driver.endpoint + "\n";
    joined.max_attempts = std::max(joined.max_attempts, driver.max_attempts);
    // With several services, nobody counts apart which is asked for what.
    joined.provider = parts.empty() || joined.provider == driver.provider
                          ? driver.provider
                          : "";
    parts.push_back({std::move(driver.store), std::move(driver.prefix)});
  }
  joined.store = std::make_unique<JoinedStore>(std::move(parts));
  return wrap(std::move(joined), places.front().options, metrics);
}

ObjectUrl split_object_url(std::string_view url) {
  const std::size_t slash = url.rfind('/');
  if (slash == std::string_view::npos) return {.folder = ".", .name = url};
  return {.folder = url.substr(0, slash + 1), .name = url.substr(slash + 1)};
}

Result<Buffer> read_url(std::string_view url, const StoreOptions& options,
                        std::uint64_t most_bytes, const Env& env,
                        std::stop_token stop) {
  const auto [folder, name] = split_object_url(url);
  if (name.empty()) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} is a folder; name an object in it", url));
  }
  LEAT_TRY(const OpenedStore opened, open_store(folder, options, env, nullptr));
  return read_object(*opened.store, key_in_store(opened.prefix, name),
                     most_bytes, std::move(stop));
}

Result<std::vector<Diagnosis>> diagnose_access(std::string_view url,
                                               const StoreOptions& options,
                                               const Env& env,
                                               const std::stop_token& stop) {
  LEAT_TRY(const Url parsed, parse_url(url));
  std::vector<Diagnosis> found;
  if (parsed.scheme != "s3") return found;
  const S3Options asked = s3_options(options);
  found.push_back(diagnose_credentials(asked, env, stop));
  // An unresolved setting is reported when the store is opened.
  const auto facts = network_facts(parsed.authority, asked, env, stop);
  if (!facts) return found;
  for (Diagnosis& judged : judge_network(*facts)) {
    found.push_back(std::move(judged));
  }
  return found;
}

}  // namespace leat
