// Where a script may write and nothing stays.
#pragma once
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// Words to put in front of a command so that what it writes into `folders`
/// lies in memory and goes with it: an overlay file system over each, in a
/// mount namespace of its own (by unshare(1)). What it reads there is what is
/// there. `run_folder` stays as it is: it holds the mounts, and what the run
/// reports; it lies in none of the folders.
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
