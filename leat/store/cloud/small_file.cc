#include "leat/store/cloud/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/base/units.h"

namespace leat {
namespace {

Error unreadable(const std::string& path, std::string_view why) {
  return invalid("reading {}: {}", path, why);
}

}  // namespace

Result<std::optional<std::string>> read_small_file(const std::string& path,
                                                   std::size_t most_bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return std::optional<std::string>();
    return unreadable(path, std::strerror(errno));
  }
  std::string text(most_bytes + 1, '\0');
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() &&
         (got = ::read(file, text.data() + size, text.size() - size)) > 0) {
    size += static_cast<std::size_t>(got);
  }
  const int failed = errno;
  ::close(file);
  if (got < 0) return unreadable(path, std::strerror(failed));
  if (size > most_bytes) {
    return unreadable(path, "larger than " + format_bytes(most_bytes));
  }
  text.resize(size);
  return std::optional<std::string>(std::move(text));
}

}  // namespace leat
