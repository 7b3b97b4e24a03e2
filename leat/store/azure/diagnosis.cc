#include "leat/store/azure/diagnosis.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "leat/store/cloud/diagnosis.h"
#include "leat/store/cloud/expiration.h"
#include "leat/store/cloud/uri.h"

namespace leat {
namespace {

/// The value of a parameter of a SAS; empty if it has none of this name.
std::string parameter(std::string_view sas, std::string_view name) {
  while (!sas.empty()) {
    const std::string_view pair = sas.substr(0, sas.find('&'));
    sas.remove_prefix(std::min(pair.size() + 1, sas.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    return uri_decode(pair.substr(std::min(equals + 1, pair.size())));
  }
  return {};
}

Diagnosis diagnose_sas(std::string_view sas, const CredentialTools& tools) {
  const auto ends = parse_iso8601(parameter(sas, "se"));
  // A stored access policy may say it instead.
  if (!ends) return known_credentials("a SAS; it does not say when it ends");
  // In seconds: nanoseconds end in the year 2262.
  const auto left =
      *ends - std::chrono::floor<std::chrono::seconds>(tools.now());
  if (left > left.zero()) {
    Diagnosis good = known_credentials("a SAS, good for another ");
    const auto minutes = std::chrono::floor<std::chrono::minutes>(left).count();
    good.found += std::to_string(minutes / 60) + " h " +
                  std::to_string(minutes % 60) + " min, and not renewed";
    return good;
  }
  Diagnosis over = known_credentials("a SAS that has ended");
  over.level = Diagnosis::Level::kBad;
  over.remedy =
      "make a new one, and set AZURE_STORAGE_SAS_TOKEN or the connection "
      "string";
  return over;
}

}  // namespace

std::optional<Diagnosis> diagnose_azure_access(const AzurePlace& place,
                                               const AzureOptions& options,
                                               const CredentialTools& tools,
                                               const std::stop_token& stop) {
  const auto settings = resolve_azure_settings(place, options, tools);
  if (!settings) return std::nullopt;
  if (const auto& known = settings->credentials) {
    if (known->session_token.empty()) {
      return known_credentials("the key of account " + known->access_key_id);
    }
    return diagnose_sas(known->session_token, tools);
  }
  if (settings->provider) {
    return diagnose_place(*settings->provider, *tools.clock,
                          "docs/howto/clouds.md", stop);
  }
  return no_credentials("not wanted (--no-sign-request)");
}

}  // namespace leat
