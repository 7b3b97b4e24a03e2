// Reads and writes a file that a person named on the command line.
#pragma once
#include <cstdint>
#include <string>

#include "leat/base/result.h"

namespace leat {

/// Reads a whole file. Blocks.
///
/// Errors:
///   kNotFound         it cannot be opened
///   kInvalidArgument  it has more than `most_bytes`
///   kUnavailable      reading failed
Result<std::string> read_text(const std::string& path,
                              std::uint64_t most_bytes);

/// Replaces a file, which keeps its mode, or creates it. On a full disk the
/// file stays as it was; a link, a pipe or a device, and a file in whose folder
/// there may be no other, is written in place. Blocks.
///
/// Errors:
///   kPermissionDenied  it is protected against writing
///   kUnavailable       it cannot be written
Result<void> write_text(const std::string& path, const std::string& text);

}  // namespace leat
