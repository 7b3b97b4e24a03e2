#include "leat/bucket/read_replies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"
#include "leat/base/object_checksums.h"
#include "leat/bucket/byte_range.h"
#include "leat/bucket/preconditions.h"
#include "leat/store/cloud/digest.h"

namespace leat {
namespace {

constexpr std::uint64_t kSummedBytes = 1 << 20;

std::uint64_t identity_of(const std::string& path, const FileRange& range) {
  const std::uint64_t hash = xxh3_64(as_bytes(path));
  return mix64(mix64(hash ^ range.offset) + range.size_bytes) | 1;
}

bool has_conditions(const Preconditions& conditions) {
  return !conditions.if_match.empty() || !conditions.if_none_match.empty() ||
         !conditions.if_modified_since.empty() ||
         !conditions.if_unmodified_since.empty();
}

Reply unsatisfiable(std::uint64_t object_bytes, const RequestHead& head) {
  Reply reply = error_reply(s3_error(S3Code::kInvalidRange), head.target);
  reply.headers += fmt::format("Content-Range: bytes */{}\r\n", object_bytes);
  return reply;
}

/// The CRC64NVME of `range`, read piece by piece; of less if the file has
/// become shorter. Blocks.
std::uint64_t crc_of(const FileRange& range) {
  std::vector<char> piece(std::min(kSummedBytes, range.size_bytes));
  std::uint64_t crc = 0;
  std::uint64_t done = 0;
  while (done < range.size_bytes) {
    const ssize_t got =
        ::pread(range.file->descriptor(), piece.data(),
                std::min<std::uint64_t>(piece.size(), range.size_bytes - done),
                static_cast<off_t>(range.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    crc = crc64_nvme(as_bytes({piece.data(), std::size_t(got)}), crc);
    done += std::uint64_t(got);
  }
  return crc;
}

/// As S3 gives the checksum of an object: if it is asked for one, and not for a
/// part of the object.
std::string checksum_header(const CachedObject& cached, const FileRange& range,
                            const RequestHead& head) {
  if (range.size_bytes != cached.object.state.size_bytes ||
      !equal_in_any_case(head.header("x-amz-checksum-mode"), "ENABLED")) {
    return {};
  }
  std::call_once(cached.is_summed, [&] {
    std::uint64_t sum = crc_of(range);
    std::string bytes(sizeof sum, '\0');
    for (auto at = bytes.rbegin(); at != bytes.rend(); ++at, sum >>= 8) {
      *at = static_cast<char>(sum & 0xff);
    }
    cached.sum = base64(bytes);
  });
  return fmt::format(
      "x-amz-checksum-crc64nvme: {}\r\nx-amz-checksum-type: FULL_OBJECT\r\n",
      cached.sum);
}

}  // namespace

ObjectReply object_reply(BucketParts& parts, const S3Target& target,
                         const RequestHead& head) {
  const auto failed = [&](const Error& error) {
    return ObjectReply{
        error_reply(read_failure(parts, target.bucket, error), head.target)};
  };
  const auto path = parts.folder.object_path(target.bucket, target.key);
  if (!path) return failed(path.error());
  const auto found = parts.objects.find(*path);
  if (!found) return failed(found.error());
  const CachedObject& cached = **found;
  const ObjectState& state = cached.object.state;

  const Preconditions conditions = Preconditions::of(head);
  if (has_conditions(conditions)) {
    const Verdict verdict = check_read(conditions, state);
    if (verdict == Verdict::kFailed) {
      return {error_reply(s3_error(S3Code::kPreconditionFailed), head.target)};
    }
    if (verdict == Verdict::kNotModified) {
      Reply reply;
      reply.status = 304;
      reply.headers = cached.headers;
      return {std::move(reply)};
    }
  }

  ObjectReply answer;
  FileRange range{cached.object.file, 0, state.size_bytes};
  answer.reply.headers = cached.headers;
  const RangeAnswer asked = parse_range(head.header("range"), state.size_bytes);
  if (std::holds_alternative<Unsatisfiable>(asked)) {
    return {unsatisfiable(state.size_bytes, head)};
  }
  if (const auto* part = std::get_if<RequestedRange>(&asked)) {
    range.offset = part->offset;
    range.size_bytes = part->size_bytes;
    answer.reply.status = 206;
    fmt::format_to(std::back_inserter(answer.reply.headers),
                   "Content-Range: bytes {}-{}/{}\r\n", part->offset,
                   part->offset + part->size_bytes - 1, state.size_bytes);
  }
  if (parts.gives_checksums) {
    answer.reply.headers += checksum_header(cached, range, head);
  }
  answer.identity = identity_of(*path, range);
  answer.reply.file = std::move(range);
  return answer;
}

}  // namespace leat
