// In the place of leat/engine/schemes/schemes.cc and leat/store/url_schemes.cc:
// their rows, and one more in each.

#include "tests/scheme/schemes.h"

#include <array>

#include "leat/store/url_scheme.h"

namespace leat {

std::span<const Scheme* const> schemes() {
#define LEAT_ADDRESS(name) &name,
  static constexpr std::array kAll = {LEAT_SCHEMES(LEAT_ADDRESS) & kToyScheme};
#undef LEAT_ADDRESS
  return kAll;
}

std::span<const UrlScheme> url_schemes() {
  static constexpr std::array kSchemes = {
      UrlScheme{"s3", UrlForm::kBucket, EtagMaker::kHttpServer},
      UrlScheme{"gs", UrlForm::kBucket, EtagMaker::kAnother},
      UrlScheme{"az", UrlForm::kBucket, EtagMaker::kAnother},
      UrlScheme{"abfss", UrlForm::kInHost, EtagMaker::kAnother},
      UrlScheme{"hf", UrlForm::kBucket, EtagMaker::kAnother},
      UrlScheme{"http", UrlForm::kHost, EtagMaker::kHttpServer},
      UrlScheme{"https", UrlForm::kHost, EtagMaker::kHttpServer},
      UrlScheme{"file", UrlForm::kPath, EtagMaker::kFileSystem},
      UrlScheme{"toy", UrlForm::kBucket, EtagMaker::kHttpServer},
  };
  return kSchemes;
}

}  // namespace leat
