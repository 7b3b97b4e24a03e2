// Which of the processes that share tiers brings a record.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/cache/record_key.h"

namespace leat {

/// A claim of a record is a lock on one byte of a file, named by the record's
/// key: taken at once or not at all, and taken away by the kernel when the
/// process that has it ends, however it ends. Two keys that share a byte are
/// one claim: somebody waits for the wrong record, and no more.
///
/// The file, `claims` in the folder, is removed by the last who leaves. Its
/// length counts the times that announce() was called.
///
/// Threads: any. In a forked child it must not be used: the child has the
///          parent's claims for as long as it lives.
class RecordClaims {
 public:
  /// Its name in the folder.
  static constexpr std::string_view kFile = "claims";

  /// Errors: as SegmentFiles::create(); kUnavailable where the file system has
  /// no such locks
  static Result<std::unique_ptr<RecordClaims>> open(const std::string& folder);
  ~RecordClaims();
  RecordClaims(const RecordClaims&) = delete;
  RecordClaims& operator=(const RecordClaims&) = delete;

  /// False: another RecordClaims, of this process or another, has it. True for
  /// a key that is ours already.
  bool try_claim(const RecordKey& key);
  /// Whether try_claim() would say so.
  bool is_others(const RecordKey& key) const;
  /// Does nothing for a key that is not ours.
  void release(const RecordKey& key);

  /// Tells the others that there is a new file among the tiers.
  void announce();
  /// Another number after each announce() of anybody.
  std::uint64_t announcements() const;

 private:
  RecordClaims(std::string path, OwnedFd file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  const OwnedFd file_;
};

}  // namespace leat
