// Checksums of samples, for those who want every byte proven.
#pragma once
#include <stop_token>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/index/build.h"
#include "leat/store/store.h"

namespace leat {

/// The same catalogue with a CRC32C of each byte field of each sample. Reads
/// all that samples have of their objects, of the versions that the catalogue
/// names, up to 16 objects at a time and 8 MiB of each. Tells
/// `options.progress`. Blocks.
///
/// Errors: as Store::read, and names the object; kCancelled
Result<Buffer> add_checksums(Store& store, std::string_view prefix,
                             Buffer catalogue, const IndexOptions& options,
                             const std::stop_token& stop);

}  // namespace leat
