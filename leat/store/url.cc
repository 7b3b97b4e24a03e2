#include "leat/store/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "leat/base/errors.h"
#include "leat/store/url_scheme.h"

namespace leat {
namespace {

/// "s3://, http://, https://, file:// or a path"
std::string all_schemes() {
  std::string all;
  for (const UrlScheme& scheme : url_schemes()) {
    if (!all.empty()) all += ", ";
    all += fmt::format("{}://", scheme.name);
  }
  return all + " or a path";
}

UrlForm form_of(std::string_view scheme) {
  const UrlScheme* const known = find_url_scheme(scheme);
  return known == nullptr ? UrlForm::kBucket : known->form;
}

Error bad_url(std::string_view text, std::string_view why) {
  return invalid("'{}' is not a URL of data: {}", text, why);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
         c == ':' || c == '[' || c == ']';
}

void drop_slashes_at_end(std::string& path, std::size_t keep) {
  while (path.size() > keep && path.back() == '/') path.pop_back();
}

/// How to write a URL that other systems write so. Empty for all others.
std::string_view our_spelling_of(std::string_view scheme,
                                 std::string_view authority) {
  constexpr std::string_view kAzure =
      "write az://CONTAINER/PREFIX for Azure Blob Storage and set "
      "AZURE_STORAGE_ACCOUNT_NAME, or write "
      "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX";
  constexpr std::array<std::string_view, 6> kAzureSchemes = {
      "azure", "adl", "abfs", "wasb", "wasbs", "azblob"};
  if (std::ranges::find(kAzureSchemes, scheme) != kAzureSchemes.end()) {
    return kAzure;
  }
  if (scheme == "gcs") return "write gs:// for Google Cloud Storage";
  if (scheme != "http" && scheme != "https") return "";
  const std::string host = lower(authority.substr(0, authority.find(':')));
  return host.ends_with(".blob.core.windows.net") ||
                 host.ends_with(".dfs.core.windows.net")
             ? kAzure
             : "";
}

Result<Url> file_url(std::string_view path) {
  if (path.empty()) return bad_url(path, "the path is empty");
  Url url{.scheme = "file", .authority = "", .path = std::string(path)};
  drop_slashes_at_end(url.path, 1);
  return url;
}

/// True for "host", "host:80", "[::1]:80".
bool is_authority(std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), is_host_character)) return false;
  const std::size_t name_end =
      text.starts_with('[') ? text.find(']') : text.find(':');
  if (name_end == 0) return false;
  if (text.starts_with('[')) {
    if (name_end == std::string_view::npos || name_end < 2) return false;
    text.remove_prefix(name_end + 1);
    if (text.empty()) return true;
    if (!text.starts_with(':')) return false;
  } else {
    if (name_end == std::string_view::npos) return true;
    text.remove_prefix(name_end);
  }
  text.remove_prefix(1);
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

/// True for "bucket@host", with its '@' at `at`.
bool names_bucket_and_host(std::string_view text, std::size_t at) {
  return at != std::string_view::npos && at > 0 &&
         text.substr(0, at).find(':') == std::string_view::npos &&
         at + 1 < text.size() && is_authority(text.substr(at + 1));
}

}  // namespace

const UrlScheme* find_url_scheme(std::string_view name) {
  const auto schemes = url_schemes();
  const auto found = std::ranges::find(schemes, name, &UrlScheme::name);
  return found == schemes.end() ? nullptr : &*found;
}

const UrlScheme* scheme_of_url(std::string_view url) {
  const std::size_t end = url.find("://");
  if (end == std::string_view::npos) return find_url_scheme("file");
  return find_url_scheme(url.substr(0, end));
}

std::string Url::text() const {
  if (form_of(scheme) == UrlForm::kPath) {
    // A relative path has no URL of its own; people know it as it is.
    return path.starts_with('/') ? "file://" + path : path;
  }
  std::string text = scheme + "://" + authority;
  if (!path.empty()) text += "/" + path;
  return text;
}

std::string Url::bucket() const {
  const UrlForm form = form_of(scheme);
  if (form == UrlForm::kPath) return "";
  if (form != UrlForm::kHost) return scheme + "://" + authority;
  std::string host = lower(authority);
  const std::string_view port = scheme == "https" ? ":443" : ":80";
  if (host.ends_with(port)) host.resize(host.size() - port.size());
  return scheme + "://" + host;
}

Result<Url> parse_url(std::string_view text) {
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return invalid("a URL of data holds a control character; remove it");
  }
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return file_url(text);

  Url url{.scheme = lower(text.substr(0, colon)), .authority = "", .path = ""};
  std::string_view rest = text.substr(colon + 3);
  const auto ours = our_spelling_of(url.scheme, rest.substr(0, rest.find('/')));
  if (!ours.empty()) {
    return invalid(std::string(ours));
  }
  const UrlScheme* const scheme = find_url_scheme(url.scheme);
  if (scheme == nullptr) {
    return invalid("unknown scheme '{}://'; use {}", url.scheme, all_schemes());
  }
  if (scheme->form == UrlForm::kPath) {
    if (rest.starts_with("localhost/")) rest.remove_prefix(9);
    if (!rest.starts_with('/')) {
      return bad_url(text, "write file:///path, with three slashes");
    }
    return file_url(rest);
  }

  const std::size_t slash = std::min(rest.find('/'), rest.size());
  url.authority = rest.substr(0, slash);
  url.path = rest.substr(slash);
  // Before anything that would show the text: it may hold a secret.
  const std::size_t at = url.authority.find('@');
  if (scheme->form == UrlForm::kInHost) {
    if (!names_bucket_and_host(url.authority, at)) {
      return invalid("write {}://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
                     url.scheme);
    }
  } else if (at != std::string::npos) {
    return invalid(
        "a {}:// URL holds a user name or password; put credentials in the "
        "environment instead",
        url.scheme);
  }
  const bool is_host = scheme->form == UrlForm::kHost;
  if (is_host && rest.find_first_of("?#") != std::string_view::npos) {
    return invalid(
        "the URL {}://{} has a query or a fragment; a place of data has "
        "neither",
        url.scheme, rest.substr(0, rest.find_first_of("?#")));
  }
  if (url.authority.empty()) {
    return bad_url(text, is_host ? "it names no host" : "it names no bucket");
  }
  if (is_host && !is_authority(url.authority)) {
    return bad_url(text, "write the host as NAME or NAME:PORT");
  }
  url.path.erase(0, url.path.find_first_not_of('/'));
  drop_slashes_at_end(url.path, 0);
  return url;
}

}  // namespace leat
