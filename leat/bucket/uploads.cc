#include "leat/bucket/uploads.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/base/system_error.h"
#include "leat/base/text.h"
#include "leat/bucket/open_folder.h"
#include "leat/bucket/random_id.h"
#include "leat/bucket/request_body.h"
#include "leat/store/s3/aws/sigv4.h"

namespace leat {
namespace {

constexpr std::size_t kMd5Digits = 32;
constexpr std::size_t kNumberDigits = 5;
constexpr std::size_t kMostTargetBytes = 16 << 10;

Error no_such_upload() { return not_found("there is no such upload"); }

/// Hexadecimal, so that it cannot lead out of our folder.
bool can_be_id(std::string_view id) {
  return id.size() == kIdDigits && from_hex(id).has_value();
}

std::string part_name(int number, std::string_view md5_hex) {
  return fmt::format("{:05}.{}", number, md5_hex);
}

/// Nullopt if `name` is not that of a part.
std::optional<UploadPart> parse_part_name(std::string_view name) {
  if (name.size() != kNumberDigits + 1 + kMd5Digits ||
      name[kNumberDigits] != '.') {
    return std::nullopt;
  }
  const auto number = number_from<int>(name.substr(0, kNumberDigits));
  UploadPart part;
  part.etag = name.substr(kNumberDigits + 1);
  if (!number || !from_hex(part.etag)) return std::nullopt;
  part.number = *number;
  return part;
}

Result<std::vector<std::string>> names_in(const std::string& path) {
  const OpenFolder folder(::opendir(path.c_str()));
  if (!folder) return system_error(errno, "reading an upload");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

Result<std::string> read_small_file(const std::string& path) {
  const OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error(errno, "reading an upload");
  std::string text(kMostTargetBytes, '\0');
  const ssize_t size = ::read(file.descriptor(), text.data(), text.size());
  if (size < 0) return system_error(errno, "reading an upload");
  text.resize(std::size_t(size));
  return text;
}

std::string take_line(std::string& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

}  // namespace

Result<std::string> Uploads::create(std::string_view bucket,
                                    std::string_view key,
                                    std::string_view headers) {
  LEAT_TRY(DraftObject target, folder_.begin_object());
  const std::string text =
      fmt::format("{}\n{}\n{}", uri_encode(bucket, Slash::kKeep),
                  uri_encode(key, Slash::kKeep), headers);
  LEAT_TRY_VOID(target.write(as_bytes(text)));
  std::string id = random_id();
  const std::string path = root() + '/' + id;
  if (::mkdir(root().c_str(), 0777) != 0 && errno != EEXIST) {
    return system_error(errno, "creating an upload");
  }
  if (::mkdir(path.c_str(), 0777) != 0 ||
      ::rename(target.path().c_str(), (path + "/target").c_str()) != 0) {
    return system_error(errno, "creating an upload");
  }
  target.release();
  return id;
}

Result<Uploads::Place> Uploads::find(const UploadName& name) const {
  if (!can_be_id(name.id)) return no_such_upload();
  Place place{root() + '/' + name.id, {}};
  auto text = read_small_file(place.path + "/target");
  if (!text) return no_such_upload();
  if (take_line(*text) != uri_encode(name.bucket, Slash::kKeep) ||
      take_line(*text) != uri_encode(name.key, Slash::kKeep)) {
    return no_such_upload();
  }
  place.headers = *std::move(text);
  return place;
}

Result<void> Uploads::put_part(const UploadName& name, int number,
                               DraftObject draft, std::string_view md5_hex) {
  LEAT_TRY(const Place place, find(name));
  const std::string mine = part_name(number, md5_hex);
  if (::rename(draft.path().c_str(), (place.path + '/' + mine).c_str()) != 0) {
    return system_error(errno, "keeping a part");
  }
  draft.release();
  // A part that is put again replaces the earlier one.
  LEAT_TRY(const auto names, names_in(place.path));
  for (const std::string& other : names) {
    const auto part = parse_part_name(other);
    if (part && part->number == number && other != mine) {
      ::unlink((place.path + '/' + other).c_str());
    }
  }
  return {};
}

Result<std::vector<UploadPart>> Uploads::parts(const UploadName& name) const {
  LEAT_TRY(const Place place, find(name));
  LEAT_TRY(const auto names, names_in(place.path));
  std::vector<UploadPart> parts;
  for (const std::string& file : names) {
    auto part = parse_part_name(file);
    struct stat status;
    if (!part || ::stat((place.path + '/' + file).c_str(), &status) != 0) {
      continue;
    }
    part->size_bytes = static_cast<std::uint64_t>(status.st_size);
    part->modified_ns = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000;
    parts.push_back(*std::move(part));
  }
  std::sort(parts.begin(), parts.end(),
            [](const UploadPart& a, const UploadPart& b) {
              return a.number < b.number;
            });
  return parts;
}

Result<void> Uploads::abort(const UploadName& name) {
  LEAT_TRY(const Place place, find(name));
  LEAT_TRY(const auto names, names_in(place.path));
  // The target goes first: without it nobody finds the rest.
  ::unlink((place.path + "/target").c_str());
  for (const std::string& file : names) {
    ::unlink((place.path + '/' + file).c_str());
  }
  ::rmdir(place.path.c_str());
  // The root stays: another upload may be about to begin in it.
  return {};
}

Result<std::vector<UploadName>> Uploads::of_bucket(
    std::string_view bucket) const {
  std::vector<UploadName> uploads;
  auto ids = names_in(root());
  if (!ids) {
    if (ids.error().code() == ErrorCode::kNotFound) return uploads;
    return std::move(ids).error();
  }
  for (std::string& id : *ids) {
    auto text = read_small_file(root() + '/' + id + "/target");
    if (!text || uri_decode(take_line(*text)) != bucket) continue;
    std::string key = uri_decode(take_line(*text));
    uploads.push_back({std::move(id), std::string(bucket), std::move(key)});
  }
  std::sort(uploads.begin(), uploads.end(),
            [](const UploadName& a, const UploadName& b) {
              return std::tie(a.key, a.id) < std::tie(b.key, b.id);
            });
  return uploads;
}

std::variant<JoinedParts, S3Error> Uploads::join(
    const UploadName& name, const std::vector<UploadPart>& wanted) const {
  const auto failed = [](const Error& error) {
    return error.code() == ErrorCode::kNotFound
               ? s3_error(S3Code::kNoSuchUpload)
               : s3_error(S3Code::kInternalError, error.message());
  };
  const auto place = find(name);
  if (!place) return failed(place.error());
  const auto have = parts(name);
  if (!have) return failed(have.error());
  auto draft = folder_.begin_object();
  if (!draft) return failed(draft.error());

  std::string digests;
  for (const UploadPart& part : wanted) {
    const auto found = std::find_if(
        have->begin(), have->end(), [&part](const UploadPart& candidate) {
          return candidate.number == part.number && candidate.etag == part.etag;
        });
    if (found == have->end()) return s3_error(S3Code::kInvalidPart);
    if (found->size_bytes < kLeastPartBytes && &part != &wanted.back()) {
      return s3_error(S3Code::kEntityTooSmall);
    }
    const std::string file =
        place->path + '/' + part_name(part.number, part.etag);
    const OpenFile from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!from.is_open()) return failed(system_error(errno, "opening a part"));
    const auto copied = draft->append_file(from);
    if (!copied) return failed(copied.error());
    digests += *from_hex(part.etag);
  }
  return JoinedParts{
      .draft = *std::move(draft),
      .etag = fmt::format("{}-{}", to_hex(md5(digests)), wanted.size()),
      .headers = place->headers};
}

}  // namespace leat
