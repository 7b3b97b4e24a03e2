#include "leat/engine/read_text.h"

#include <fstream>

#include "leat/base/errors.h"

namespace leat {

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
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (file.flush()) return {};
  return unavailable(
      "{} cannot be written: is its folder there, and has the disk room?",
      path);
}

}  // namespace leat
