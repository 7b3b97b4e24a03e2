// The checksums that services send with an object.
#pragma once
#include <cstddef>
#include <span>

#include "leat/base/result.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// Compares `bytes`, the body of a successful reply, with a checksum of the
/// whole object that the reply gives. If there are several, the first of these
/// counts:
///
///     x-amz-checksum-crc64nvme, -crc32c, -crc32, -sha256, -sha1
///     x-goog-hash: crc32c=…, md5=…
///     x-ms-blob-content-md5, content-md5
///
/// A reply without one passes, and so does one with a part of the object, or
/// with a checksum that is not base64 of its length: S3 gives an object in
/// parts one of the parts' checksums ("…-3").
///
/// Errors:
///   kUnavailable  the bytes are not those of the object: another try may bring
///                 them
Result<void> check_object_checksum(const HttpReply& reply,
                                   std::span<const std::byte> bytes);

}  // namespace leat
