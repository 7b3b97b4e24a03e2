#include "leat/bucket/object_note.h"

#include <fmt/format.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

constexpr char kEtagName[] = "user.leat.etag";
constexpr char kHeadersName[] = "user.leat.headers";

std::string read_note(int descriptor, const std::string& path,
                      const char* name) {
  std::array<char, kMostHeaderBytes> note;
  const ssize_t size =
      descriptor >= 0
          ? ::fgetxattr(descriptor, name, note.data(), note.size())
          : ::getxattr(path.c_str(), name, note.data(), note.size());
  return size > 0 ? std::string(note.data(), std::size_t(size)) : std::string();
}

/// The note holds for one size and time; a file changed by others loses it.
std::string validity_of(const ObjectState& state) {
  return fmt::format("{} {} ", state.size_bytes, state.modified_ns);
}

bool can_be_etag(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

/// Lines of printable characters and tabs, so that no file can forge a reply.
bool can_be_headers(std::string_view text) {
  if (!text.ends_with("\r\n")) return false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    if (line.find(": ") == std::string_view::npos) return false;
    for (const char c : line) {
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') return false;
    }
    text.remove_prefix(line.size() + 2);
  }
  return true;
}

std::string etag_of(const ObjectState& state) {
  Hasher128 hasher;
  hasher.update(state.size_bytes);
  hasher.update(static_cast<std::uint64_t>(state.modified_ns));
  return hasher.digest().hex();
}

}  // namespace

Result<void> write_object_note(int descriptor, const ObjectState& state) {
  const std::string note = validity_of(state) + state.etag;
  (void)::fsetxattr(descriptor, kEtagName, note.data(), note.size(), 0);
  if (!can_be_headers(state.headers)) return {};
  if (::fsetxattr(descriptor, kHeadersName, state.headers.data(),
                  state.headers.size(), 0) == 0) {
    return {};
  }
  // Some file systems hold a few kilobytes of attributes, and some none.
  if (errno != ENOSPC && errno != EDQUOT && errno != E2BIG && errno != ERANGE) {
    return {};
  }
  return exhausted(
      "the file system has no room for the object's {} bytes of headers: {}; "
      "send fewer",
      state.headers.size(), std::generic_category().message(errno));
}

void read_object_note(int descriptor, const std::string& path,
                      ObjectState& state) {
  const std::string note = read_note(descriptor, path, kEtagName);
  const std::string validity = validity_of(state);
  if (!note.starts_with(validity) ||
      !can_be_etag(std::string_view(note).substr(validity.size()))) {
    state.etag = etag_of(state);
    return;
  }
  state.etag = note.substr(validity.size());
  state.headers = read_note(descriptor, path, kHeadersName);
  if (!can_be_headers(state.headers)) state.headers.clear();
}

}  // namespace leat
