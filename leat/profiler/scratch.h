// Folders that a script may write to without leaving anything.
#pragma once
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// Words to put in front of a command so that its writes into `folders` lie in
/// memory and vanish with it: an overlay file system over each folder, in a
/// mount namespace of its own (by unshare(1)). The command reads the folders'
/// real files. `run_folder` stays as it is, since it holds the mounts and the
/// reports of the run; it lies in none of the folders.
///
/// Folders inside others are covered by them, and so are other file systems
/// mounted below a folder; those that no overlay can cover, and single files
/// that are mounted there, can be read alone.
std::vector<std::string> scratch_words(
    std::span<const std::filesystem::path> folders,
    const std::filesystem::path& run_folder, bool is_root);

/// Whether this machine lets us mount so.
///
/// Errors:
///   kPermissionDenied  it does not; says what to do instead
Result<void> check_scratch(std::span<const std::filesystem::path> folders,
                           const std::filesystem::path& run_folder,
                           const std::stop_token& stop);

}  // namespace leat
