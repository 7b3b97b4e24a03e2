#include "leat/bucket/repeat.h"

#include <fmt/format.h>

#include <algorithm>

#include "leat/base/errors.h"
#include "leat/base/text.h"

namespace leat {
namespace {

constexpr std::size_t kDigits = 8;  // Below kMostObjects.

}  // namespace

Result<Repeat> Repeat::parse(std::string_view text, std::string_view root) {
  const std::size_t colon = text.rfind(':');
  Repeat repeat;
  if (colon != std::string_view::npos && colon != 0) {
    repeat.count_ =
        number_from<std::uint64_t>(text.substr(colon + 1)).value_or(0);
  }
  const std::string_view file = text.substr(0, colon);
  if (repeat.count_ == 0 || repeat.count_ > kMostObjects ||
      file.find('/') == std::string_view::npos) {
    return invalid("'{}' is not BUCKET/FILE:COUNT with a count of at most {}",
                   text, kMostObjects);
  }
  const std::size_t base = file.rfind('/') + 1;
  const std::size_t dot = std::min(file.find('.', base), file.size());
  repeat.stem_ = fmt::format("{}/{}", root, file.substr(0, dot));
  repeat.ending_ = file.substr(dot);
  return repeat;
}

std::string Repeat::name(std::uint64_t i) const {
  return fmt::format("{}-{:0{}}{}",
                     std::string_view(stem_).substr(stem_.rfind('/') + 1), i,
                     kDigits, ending_);
}

std::string Repeat::file_of(std::string path) const {
  const std::size_t size = stem_.size() + 1 + kDigits + ending_.size();
  if (path.size() != size || !path.starts_with(stem_) ||
      path[stem_.size()] != '-' || !path.ends_with(ending_)) {
    return path;
  }
  const auto number = number_from<std::uint64_t>(
      std::string_view(path).substr(stem_.size() + 1, kDigits));
  if (!number || *number >= count_) return path;
  return source();
}

}  // namespace leat
