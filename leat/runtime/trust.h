// Which folders and files of this machine are believed.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"

namespace leat {

/// Why nothing that lies in `folder` is believed: another user than root owns
/// it, or others can write it. The text names the folder, its owner, its mode
/// and the remedy. Empty if the folder is this user's alone to write, or is not
/// there yet. Blocks.
std::string distrust_of_folder(const std::string& folder);

/// The same, and warns that `use` goes without it: once for each folder of this
/// process.
bool is_trusted_folder(const std::string& folder, std::string_view use);

/// The same of an open file, which has `path`, and the same for it.
std::string distrust_of_file(int fd, const std::string& path);
bool is_trusted_file(int fd, const std::string& path);

/// Makes a folder, and what it lies in. The folder is for this user alone; one
/// that is there keeps its mode. Errors: those of mkdir
Result<void> make_own_folder(const std::string& folder);

/// Opens a file that exists, with `flags`. It is not opened through a link.
///
/// Errors: those of open; kPermissionDenied if others made the file or can
///         write it: the text has the remedy
Result<OwnedFd> open_own_file(const std::string& path, int flags);

}  // namespace leat
