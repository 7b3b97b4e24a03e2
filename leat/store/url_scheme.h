// The schemes of URLs, as far as a URL and its ETags go. The engine knows which
// driver opens each.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {

/// How a URL of a scheme is written.
enum class UrlForm : std::uint8_t {
  kBucket,  ///< scheme://bucket/prefix; any characters in the prefix.
  kInHost,  ///< scheme://bucket@host/prefix; the same.
  kHost,    ///< scheme://host:port/path, without a query or a fragment.
  kPath,    ///< scheme:///path, or the path alone.
};

/// The maker of the ETags of objects: those of one maker can be compared.
enum class EtagMaker : std::uint8_t { kHttpServer, kFileSystem, kAnother };

struct UrlScheme {
  std::string_view name;  ///< In lower case.
  UrlForm form = UrlForm::kBucket;
  EtagMaker etags = EtagMaker::kAnother;
};

/// All of them, in the order in which messages name them: url_schemes.cc.
std::span<const UrlScheme> url_schemes();

/// Null: there is none of that name.
const UrlScheme* find_url_scheme(std::string_view name);

/// The scheme of a URL, which is not checked. A path alone is one of `file`.
/// Null: there is none of that name.
const UrlScheme* scheme_of_url(std::string_view url);

}  // namespace leat
