#include "leat/index/places_note.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/index/catalogue_file.h"
#include "leat/runtime/trust.h"

namespace leat {
namespace {

constexpr std::string_view kBegin = "leat places 1\n";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::string path_of_note(const std::string& catalogue_path) {
  return catalogue_path + ".places";
}

std::string read_start(const std::string& path) {
  const Result<OwnedFd> file = open_own_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) return "";
  std::string text(kMostBytes + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::pread(file->get(), text.data() + have,
                                text.size() - have, static_cast<off_t>(have));
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return have > kMostBytes ? "" : text;
}

/// Takes "LENGTH TEXT\n" off the front of `rest`.
std::optional<std::string> take_text(std::string_view& rest) {
  std::size_t length = 0;
  const char* const end = rest.data() + rest.size();
  const auto [after, error] = std::from_chars(rest.data(), end, length);
  if (error != std::errc() || after == end || *after != ' ') {
    return std::nullopt;
  }
  rest.remove_prefix(static_cast<std::size_t>(after - rest.data()) + 1);
  if (length >= rest.size() || rest[length] != '\n') return std::nullopt;
  std::string text(rest.substr(0, length));
  rest.remove_prefix(length + 1);
  return text;
}

}  // namespace

Result<void> write_places(const std::string& catalogue_path,
                          const std::vector<NotedPlace>& places) {
  std::string text(kBegin);
  for (const auto& [url, identity] : places) {
    text += fmt::format("{} {}\n{} {}\n", url.size(), url, identity.size(),
                        identity);
  }
  return write_catalogue(path_of_note(catalogue_path), as_bytes(text));
}

std::optional<std::vector<NotedPlace>> read_places(
    const std::string& catalogue_path) {
  const std::string text = read_start(path_of_note(catalogue_path));
  if (!text.starts_with(kBegin)) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(kBegin.size());
  std::vector<NotedPlace> places;
  while (!rest.empty()) {
    auto url = take_text(rest);
    auto identity = url ? take_text(rest) : std::nullopt;
    if (!identity) return std::nullopt;
    places.push_back({*std::move(url), *std::move(identity)});
  }
  if (places.empty()) return std::nullopt;
  return places;
}

}  // namespace leat
