// Decides which of the processes that share tiers brings a record.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/cache/record_key.h"

namespace leat {

/// A claim of a record is a lock on one byte of a file, chosen by the record's
/// key. It is taken immediately or not at all, and the kernel releases it when
/// its process ends, however it ends. Two keys that share a byte share a claim:
/// at worst somebody waits for the wrong record.
///
/// The last process to leave removes the file, `claims` in the folder. The
/// file's length counts the calls of announce().
///
/// Threads: any. It must not be used in a forked child, which keeps the
///          parent's claims for as long as it lives.
class RecordClaims {
 public:
  /// The file's name in the folder.
  static constexpr std::string_view kFile = "claims";

  /// Errors: as SegmentFiles::create(); kUnavailable if the file system has no
  /// such locks
  static Result<std::unique_ptr<RecordClaims>> open(const std::string& folder);
  ~RecordClaims();
  RecordClaims(const RecordClaims&) = delete;
  RecordClaims& operator=(const RecordClaims&) = delete;

  /// False: another RecordClaims, in this process or another, has it. True for
  /// a key that is already claimed here.
  bool try_claim(const RecordKey& key);
  /// Whether try_claim() would return false.
  bool is_others(const RecordKey& key) const;
  /// Does nothing for a key that is not claimed here.
  void release(const RecordKey& key);

  /// Tells the others that there is a new file among the tiers.
  void announce();
  /// Changes with each announce() by anybody.
  std::uint64_t announcements() const;

 private:
  RecordClaims(std::string path, OwnedFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const OwnedFd file_;
};

}  // namespace leat
