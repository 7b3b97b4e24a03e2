// Reading a file that must not be large: settings, tokens.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "leat/base/result.h"

namespace leat {

/// The file's text; nullopt if there is no such file. Blocks on the disk.
///
/// Errors:
///   kInvalidArgument  it cannot be read or has more than `most_bytes`
Result<std::optional<std::string>> read_small_file(const std::string& path,
                                                   std::size_t most_bytes);

}  // namespace leat
