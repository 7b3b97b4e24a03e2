// The list of schemes. It has this file to itself: a program that defines
// url_schemes() in a source of its own has other schemes, as tests/scheme does.

#include <array>

#include "leat/store/url_scheme.h"

namespace leat {

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
  };
  return kSchemes;
}

}  // namespace leat
