#include "leat/cache/inspect.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/cache/segment.h"
#include "leat/cache/segment_files.h"

namespace leat {
namespace {

using Alive = std::map<std::uint64_t, RecordEntry>;  // By offset.

Result<std::vector<std::string>> paths_of(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return not_found(
        "there is no folder {}; name the one that leat.Cache(disk=) was given",
        folder);
  }
  (void)std::filesystem::directory_iterator(folder, error);
  if (error) return file_error(-error.value(), "listing " + folder);
  std::vector<std::string> paths = segment_paths(folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_free(int fd) {
  if (!try_lock_segment(fd)) return false;
  (void)::flock(fd, LOCK_UN);
  return true;
}

std::uint64_t read_alive(const Segment& segment, Alive& alive) {
  const Result<std::uint64_t> bad = segment.scan([&](const RecordEntry& entry) {
    if (entry.kind == RecordEntry::Kind::kPut) {
      alive.insert_or_assign(entry.offset, entry);
    } else {
      alive.erase(entry.offset);
    }
  });
  return bad ? *bad : 1;
}

bool is_good(const Segment& segment, const RecordEntry& entry) {
  Buffer body(entry.length_bytes);
  return segment.read(entry.offset, body.span()) == 0 &&
         record_crc(entry.key, body.span()) == entry.body_crc;
}

/// Called with the length of each record that was read.
using HearBytes = std::function<void(std::uint64_t)>;

/// Counts wrong bodies that have not been dropped in the meantime.
std::uint64_t count_bad(const Segment& segment, const Alive& alive,
                        const HearBytes& read, const std::stop_token& stop) {
  std::vector<std::uint64_t> wrong;
  for (const auto& [offset, entry] : alive) {
    if (stop.stop_requested()) return 0;
    // A hostile length allocates no more memory than the file has.
    const std::uint64_t end = segment.file_bytes();
    if (offset + entry.length_bytes > end || !is_good(segment, entry)) {
      wrong.push_back(offset);
    }
    read(entry.length_bytes);
  }
  if (wrong.empty()) return 0;
  Alive now;
  (void)read_alive(segment, now);
  return static_cast<std::uint64_t>(std::count_if(
      wrong.begin(), wrong.end(),
      [&](std::uint64_t offset) { return now.contains(offset); }));
}

SegmentReport inspect(const std::string& path, Bodies bodies, FileOps& ops,
                      const HearBytes& read, const std::stop_token& stop) {
  SegmentReport report{.path = path,
                       .allocated_bytes = allocated_bytes_of(path)};
  SegmentFiles::Opened file{
      .fd = OwnedFd(ops.open(path, O_RDONLY | O_NOFOLLOW, 0))};
  const int fd = file.fd.get();
  report.is_in_use = file.fd && !is_free(fd);
  const auto state = file.fd ? Segment::state_of(fd, ops) : std::nullopt;
  report.is_ours = state && *state != FileState::kForeign;
  report.is_damaged = state == FileState::kDamaged;
  if (!state) {
    report.unread = std::strerror(file.fd ? EIO : -fd);
    return report;
  }
  const std::optional<Segment> segment = Segment::open(std::move(file), ops);
  if (!segment) {
    report.bad = report.is_damaged ? 1 : 0;
    return report;
  }
  Alive alive;
  report.bad = read_alive(*segment, alive);
  report.records = alive.size();
  for (const auto& [offset, entry] : alive) {
    report.record_bytes += entry.length_bytes;
  }
  if (bodies == Bodies::kCheck) {
    report.bad += count_bad(*segment, alive, read, stop);
  }
  return report;
}

}  // namespace

Result<std::vector<SegmentReport>> inspect_cache(
    const std::string& folder, Bodies bodies, FileOps& ops,
    const std::stop_token& stop, const HearInspection& progress) {
  LEAT_TRY(const std::vector<std::string> paths, paths_of(folder));
  InspectProgress now;
  for (const std::string& path : paths) {
    now.all_bytes += allocated_bytes_of(path);
  }
  const auto tell = [&](std::uint64_t done_bytes) {
    if (progress)
      progress({std::min(done_bytes, now.all_bytes), now.all_bytes});
  };
  std::vector<SegmentReport> reports;
  reports.reserve(paths.size());
  for (const std::string& path : paths) {
    tell(now.done_bytes);
    std::uint64_t of_segment = 0;
    const auto read = [&](std::uint64_t bytes) {
      of_segment += bytes;
      tell(now.done_bytes + of_segment);
    };
    reports.push_back(inspect(path, bodies, ops, read, stop));
    now.done_bytes += reports.back().allocated_bytes;
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "looking at the cache was stopped");
    }
  }
  return reports;
}

Result<ClearReport> clear_cache(const std::string& folder, FileOps& ops) {
  LEAT_TRY(const std::vector<std::string> paths, paths_of(folder));
  ClearReport report;
  for (const std::string& path : paths) {
    const OwnedFd fd(ops.open(path, O_RDONLY | O_NOFOLLOW, 0));
    if (fd.get() == -ENOENT) continue;
    if (fd && !try_lock_segment(fd.get())) {
      ++report.in_use;
      continue;
    }
    const std::uint64_t bytes = allocated_bytes_of(path);
    if (const int error = ops.unlink(path); error != 0 && error != -ENOENT) {
      return file_error(error, "removing " + path);
    }
    ++report.removed;
    report.allocated_bytes += bytes;
  }
  return report;
}

}  // namespace leat
