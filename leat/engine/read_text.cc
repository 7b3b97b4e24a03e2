#include "leat/engine/read_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "leat/base/errors.h"

namespace leat {
namespace {

/// False if some of the text may be missing.
bool is_all_written(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  return file.good();
}

/// A link, a pipe or a device has to stay what it is.
bool may_be_replaced(const std::string& path) {
  std::error_code failed;
  const auto kind = std::filesystem::symlink_status(path, failed).type();
  return kind == std::filesystem::file_type::regular ||
         kind == std::filesystem::file_type::not_found;
}

}  // namespace

Result<std::string> read_text(const std::string& path,
                              std::uint64_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return not_found("{} cannot be read: is there such a file?", path);
  }
  std::string text;
  std::string block(1 << 16, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) ||
         file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      return invalid("{} has more than {} bytes", path, most_bytes);
    }
  }
  if (file.bad()) {
    return unavailable("reading {} failed: is it a file?", path);
  }
  return text;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  const Error unwritten = unavailable(
      "{} cannot be written: is its folder there, and has the disk room?",
      path);
  const std::string draft = fmt::format("{}.part-{}", path, ::getpid());
  if (may_be_replaced(path) && std::ofstream(draft).is_open()) {
    std::error_code failed;
    const bool is_whole = is_all_written(draft, text);
    if (is_whole) std::filesystem::rename(draft, path, failed);
    if (is_whole && !failed) return {};
    std::filesystem::remove(draft, failed);
    if (!is_whole) return unwritten;
  }
  // No other file may lie in its folder, or take its place.
  if (is_all_written(path, text)) return {};
  return unwritten;
}

}  // namespace leat
