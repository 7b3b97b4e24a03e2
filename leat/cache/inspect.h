// Inspects a cache folder from outside, for `leat cache`.
#pragma once
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/cache/file_ops.h"

namespace leat {

/// The content of one segment of a folder.
struct SegmentReport {
  std::string path;
  bool is_ours = true;      ///< False: foreign, another version, or unread.
  bool is_damaged = false;  ///< Its header is damaged: counts as bad.
  std::string unread;       ///< The reason why it could not be read, or empty.
  bool is_in_use = false;   ///< A live process writes it.
  std::uint64_t records = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< On disk, without holes.
  /// Headers and entries, and bodies if asked for.
  std::uint64_t bad = 0;
};

enum class Bodies : std::uint8_t { kTrust, kCheck };

/// The progress of inspect_cache(). Segments count by their size on disk.
struct InspectProgress {
  std::uint64_t done_bytes = 0;
  std::uint64_t all_bytes = 0;
};
/// Called on the caller's thread, often. May be empty.
using HearInspection = std::function<void(const InspectProgress&)>;

/// Reports each segment of a folder, in the order of their names; with kCheck,
/// reads every record and counts those with a wrong checksum. Jobs may continue
/// in the meantime: a record that is dropped during the read does not count as
/// bad. Blocks.
///
/// Errors:
///   kNotFound   there is no such folder
///   kPermissionDenied  it cannot be listed
///   kCancelled  `stop` fired first
Result<std::vector<SegmentReport>> inspect_cache(
    const std::string& folder, Bodies bodies, FileOps& ops,
    const std::stop_token& stop, const HearInspection& progress = {});

struct ClearReport {
  std::uint64_t removed = 0;          ///< Segments.
  std::uint64_t in_use = 0;           ///< Kept: live processes write them.
  std::uint64_t allocated_bytes = 0;  ///< The bytes of the removed ones.
};

/// Removes the segments that no live process writes, and nothing else.
///
/// Errors: kNotFound as above; kPermissionDenied if one cannot be removed
Result<ClearReport> clear_cache(const std::string& folder, FileOps& ops);

}  // namespace leat
