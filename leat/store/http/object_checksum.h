// The checksums that services send with an object.
#pragma once
#include <cstddef>
#include <span>

#include "leat/base/result.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// Compares `bytes`, the body of a successful reply, with the CRC32C that the
/// reply gives of the whole object (x-amz-checksum-crc32c, x-goog-hash). A
/// reply without one, or with a part of the object, passes.
///
/// Errors:
///   kUnavailable  the bytes are not those of the object: another try may bring
///                 them
Result<void> check_object_checksum(const HttpReply& reply,
                                   std::span<const std::byte> bytes);

}  // namespace leat
