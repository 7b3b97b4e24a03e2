#include "leat/bucket/repeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace leat {
namespace {

constexpr std::size_t kDigits = 8;  // Below kMostObjects.

}  // namespace

Result<Repeat> Repeat::parse(std::string_view text, std::string_view root) {
  const std::size_t colon = text.rfind(':');
  Repeat repeat;
  if (colon != std::string_view::npos && colon != 0) {
    const char* const last = text.data() + text.size();
    const auto [end, error] =
        std::from_chars(text.data() + colon + 1, last, repeat.count_);
    if (error != std::errc() || end != last) repeat.count_ = 0;
  }
  const std::string_view file = text.substr(0, colon);
  if (repeat.count_ == 0 || repeat.count_ > kMostObjects ||
      file.find('/') == std::string_view::npos) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is not BUCKET/FILE:COUNT with a count of at "
                             "most {}",
                             text, kMostObjects));
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
  std::uint64_t number = 0;
  const char* const first = path.data() + stem_.size() + 1;
  const auto [end, error] = std::from_chars(first, first + kDigits, number);
  if (error != std::errc() || end != first + kDigits || number >= count_) {
    return path;
  }
  return stem_ + ending_;
}

}  // namespace leat
