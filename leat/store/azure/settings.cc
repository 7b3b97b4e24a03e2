#include "leat/store/azure/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/text.h"
#include "leat/store/azure/token_sources.h"
#include "leat/store/cloud/ask.h"
#include "leat/store/cloud/digest.h"
#include "leat/store/cloud/node_turn.h"
#include "leat/store/cloud/token.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

constexpr const char* kConnectionString = "AZURE_STORAGE_CONNECTION_STRING";
/// Azurite's account and key, which are published.
constexpr std::string_view kDevelopment =
    "AccountName=devstoreaccount1;"
    "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/"
    "K1SZFPTOtr/KBHBeksoGMGw==;"
    "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1";

/// The domains of Azure's clouds and of OneLake. Credentials go to no other
/// that nobody but a URL names: a row of somebody's manifest is a URL, too.
constexpr std::array<std::string_view, 5> kDomains = {
    "core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net",
    "core.cloudapi.de", "fabric.microsoft.com"};
/// The domain of accounts that have a zone: ACCOUNT.z07.dfs.storage.azure.net.
constexpr std::string_view kZonedDomain = "storage.azure.net";

/// The account and what goes with it. Each has its place for messages.
struct Account {
  std::string name;
  std::string zone;  ///< ".z07"; empty: the account has none.
  std::string key;   ///< In base64.
  std::string sas;
  std::string blob_endpoint;
  std::string suffix = "core.windows.net";
  std::string scheme = "https";
};

Result<void> check_container(std::string_view container) {
  if (container.empty() || container.size() > 63 ||
      !consists_of(container, "-$")) {
    return invalid("'{}' is no container name: 1 to 63 letters, digits and '-'",
                   uri_encode(container.substr(0, 63), Slash::kKeep));
  }
  return {};
}

/// Parses "Name=value;…" and returns the names in lower case. Messages never
/// quote the text, since it holds a key.
std::map<std::string, std::string> parts_of(std::string_view text) {
  std::map<std::string, std::string> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(';'));
    const std::size_t equals = std::min(part.find('='), part.size());
    parts[lowered(part.substr(0, equals))] =
        part.substr(std::min(equals + 1, part.size()));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return parts;
}

Account account_of(std::string_view connection_string) {
  auto parts = parts_of(connection_string);
  if (lowered(parts["usedevelopmentstorage"]) == "true") {
    parts = parts_of(kDevelopment);
  }
  Account account;
  account.name = parts["accountname"];
  account.key = parts["accountkey"];
  account.sas = parts["sharedaccesssignature"];
  account.blob_endpoint = parts["blobendpoint"];
  if (!parts["endpointsuffix"].empty())
    account.suffix = parts["endpointsuffix"];
  if (!parts["defaultendpointsprotocol"].empty()) {
    account.scheme = parts["defaultendpointsprotocol"];
  }
  return account;
}

std::string first_of(const Env& env, std::array<const char*, 2> names) {
  return value_of(env, names[0]).value_or(value_of(env, names[1]).value_or(""));
}

Account find_account(const Env& env) {
  if (const auto text = value_of(env, kConnectionString)) {
    return account_of(*text);
  }
  Account account;
  account.name =
      first_of(env, {"AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"});
  account.key =
      first_of(env, {"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"});
  account.sas = value_of(env, "AZURE_STORAGE_SAS_TOKEN").value_or("");
  return account;
}

/// Cuts ".z07" off the name of an account that has a zone.
std::string cut_zone(std::string& name) {
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const std::string zone = name.substr(dot);
  if (!zone.starts_with(".z") || zone.size() < 3 ||
      zone.find_first_not_of("0123456789", 2) != std::string::npos) {
    return {};
  }
  name.resize(dot);
  return zone;
}

/// Takes the account from the URL, and the endpoint unless one is given.
Result<void> go_to(std::string host, bool is_endpoint_given, Account& account) {
  constexpr std::string_view kDfs = ".dfs.";
  host = lowered(host);
  const std::size_t at = host.find(kDfs);
  if (at == std::string::npos || at == 0) {
    return invalid(
        "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX");
  }
  std::string name = host.substr(0, at);
  const std::string domain = host.substr(at + kDfs.size());
  std::string zone = domain == kZonedDomain ? cut_zone(name) : std::string();
  if (!account.name.empty() && account.name != name) {
    return invalid(
        "the URL is of account {}, and the environment's keys are of {}; unset "
        "{} and AZURE_STORAGE_ACCOUNT_NAME, or set them to the URL's account",
        name, uri_encode(account.name, Slash::kEncode), kConnectionString);
  }
  const bool is_azures =
      !zone.empty() || std::ranges::find(kDomains, domain) != kDomains.end();
  if (!is_endpoint_given && !is_azures && domain != account.suffix) {
    return invalid(
        "the URL's host {} is not in a domain of Azure, and neither "
        "endpoint_url nor the environment names it, so nothing is sent there; "
        "if it is right, give its endpoint_url (--endpoint-url), or "
        "EndpointSuffix={} in {}",
        uri_encode(host, Slash::kEncode), uri_encode(domain, Slash::kEncode),
        kConnectionString);
  }
  account.name = std::move(name);
  account.zone = std::move(zone);
  account.suffix = domain;
  return {};
}

Result<Endpoint> endpoint_of(const Account& account,
                             const AzureOptions& options) {
  if (!options.endpoint_url.empty()) {
    return parse_endpoint(
        {options.endpoint_url, "endpoint_url (--endpoint-url)"});
  }
  if (!account.blob_endpoint.empty()) {
    return parse_endpoint({account.blob_endpoint, kConnectionString});
  }
  if (account.name.empty()) {
    return invalid(
        "no storage account is named; set AZURE_STORAGE_ACCOUNT_NAME, or write "
        "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX");
  }
  return parse_endpoint(
      {fmt::format("{}://{}{}.blob.{}", account.scheme, account.name,
                   account.zone, account.suffix),
       "AZURE_STORAGE_ACCOUNT_NAME"});
}

Result<std::optional<Credentials>> known_credentials(const Account& account) {
  Credentials found;
  if (!account.key.empty()) {
    auto key = base64_decode(account.key);
    if (!key || account.name.empty() || !consists_of(account.name, "-")) {
      return invalid(
          "the account's key is not base64, or its name is missing; copy {}, "
          "or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY again",
          kConnectionString);
    }
    found.access_key_id = account.name;
    found.secret_access_key = *std::move(key);
    return std::optional(std::move(found));
  }
  if (account.sas.empty()) return std::optional<Credentials>();
  found.session_token =
      account.sas.substr(account.sas.starts_with('?') ? 1 : 0);
  if (!is_header_word(found.session_token) ||
      found.session_token.find_first_of("#?\"<>\\^`{|}") != std::string::npos) {
    return invalid(
        "the SAS holds characters that no URL holds; copy "
        "AZURE_STORAGE_SAS_TOKEN again");
  }
  return std::optional(std::move(found));
}

}  // namespace

Result<AzureSettings> resolve_azure_settings(const AzurePlace& place,
                                             const AzureOptions& options,
                                             const CredentialTools& tools) {
  LEAT_TRY_VOID(check_container(place.container));
  Account account = find_account(tools.env);
  if (!place.host.empty()) {
    const bool is_endpoint_given =
        !options.endpoint_url.empty() || !account.blob_endpoint.empty();
    LEAT_TRY_VOID(go_to(place.host, is_endpoint_given, account));
  }
  AzureSettings settings;
  settings.ca_bundle = options.ca_bundle;
  LEAT_TRY(settings.endpoint, endpoint_of(account, options));
  if (options.no_sign_request) return settings;
  LEAT_TRY(settings.credentials, known_credentials(account));
  if (settings.credentials) return settings;
  LEAT_TRY_VOID(check_token_url(settings.endpoint.url(), "the endpoint"));
  LEAT_TRY(settings.provider, find_azure_token_source(tools));
  settings.turn_path = node_turn_path(tools.env);
  return settings;
}

}  // namespace leat
