// http://host/path and https://: objects of any web server.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "leat/engine/ledger.h"
#include "leat/engine/schemes/schemes.h"
#include "leat/store/http/http_store.h"

namespace leat {
namespace {

/// Escapes characters that users write in URLs and HTTP does not accept;
/// existing escapes stay.
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

/// The prefix is part of the base, since a URL is encoded and keys are not.
Result<Driver> open_http(const Url& url, const StoreOptions& options,
                         const Env&, Metrics* metrics) {
  Driver driver;
  driver.identity = url.text();
  driver.provider = provider_at(url.text());
  driver.notes = notes_at(url.bucket());
  driver.service = url.bucket() + "\n";
  driver.is_plain_http = true;
  auto http = open_http_client(
      http_options(options, options.ca_bundle, driver.notes), metrics);
  LEAT_TRY(driver.store, open_http_store(as_sent(url.text()), std::move(http)));
  return driver;
}

}  // namespace

constinit const Scheme kHttpScheme = {"http", open_http};
constinit const Scheme kHttpsScheme = {"https", open_http};

}  // namespace leat
