// What each of the jobs that share tiers has yet to read of their dataset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/store/use_board.h"

namespace leat {

/// One file a job, `job-ID.board`, in the folder that they share: a bit for
/// each sample that the running epoch of the job has yet to read. Its owner
/// holds `flock` on it. One whose lock is free belongs to a job that is gone,
/// and is removed by whoever finds it.
///
/// It is a hint: what it says wrongly costs room in a cache, or a fetch.
///
///     magic "LEATJOB1" · samples, 8 bytes · digest of the dataset, 16 bytes ·
///     bits, sample 0 in the lowest of the first byte
///
/// Numbers are little-endian.
///
/// Threads: any; look() one at a time.
class JobBoard final : public UseBoard {
 public:
  /// More samples than this would be too much to read again and again.
  static constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 24;

  /// Errors: as SegmentFiles::create(); kInvalidArgument past kMostSamples
  static Result<std::unique_ptr<JobBoard>> open(const std::string& folder,
                                                Hash128 dataset,
                                                std::uint64_t samples);
  ~JobBoard() override;

  void begin_epoch(std::uint64_t epoch,
                   const std::vector<bool>& wanted) override;
  void used(std::uint64_t epoch, SampleId sample) override;

  /// Reads what the other jobs have written. Blocks for a few small reads.
  void look();
  /// As of the last look(): whether any other job has yet to read it.
  bool others_want(SampleId sample) const;
  /// Jobs beside this one, as of the last look().
  std::size_t others() const;

 private:
  struct Other {
    OwnedFd file;
    bool is_of_us = false;  ///< Of the same dataset.
    std::vector<std::uint8_t> bits;
  };
  JobBoard(std::string folder, std::string path, OwnedFd file,
           std::uint64_t samples, Hash128 dataset);
  std::vector<std::byte> header() const;
  void meet(const std::string& path);
  bool is_alive(const std::string& path, const OwnedFd& file) const;

  const std::string folder_;
  const std::string path_;
  const OwnedFd file_;
  const std::uint64_t samples_;
  const Hash128 dataset_;

  mutable Mutex mutex_;
  std::uint64_t epoch_ LEAT_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint8_t> bits_ LEAT_GUARDED_BY(mutex_);
  std::vector<std::uint8_t> wanted_ LEAT_GUARDED_BY(mutex_);  ///< By others.
  std::size_t other_jobs_ LEAT_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Other> others_;  // Of who calls look().
};

}  // namespace leat
