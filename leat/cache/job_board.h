// When each of the jobs that share tiers reads which samples of their dataset.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/mutex.h"
#include "leat/base/owned_fd.h"
#include "leat/base/result.h"
#include "leat/store/use_board.h"

namespace leat {

/// One file for each job, `job-ID.board`, in the folder that they share: its
/// position, and the turn at which it next reads each sample. Its owner holds a
/// `flock` on it. A board whose lock is free belongs to a job that is gone; a
/// process that finds it removes it.
///
/// It is only a hint: an error in it costs cache room, or a fetch.
///
///     magic "LEATJOB2" · samples, 8 bytes · digest of the dataset, 16 bytes ·
///     turns that are over, 8 bytes · turns, 4 bytes a sample
///
/// Numbers are little-endian. The files are mapped: other jobs see a write
/// immediately, without a system call. Files of other users are ignored,
/// because truncating a mapped file would kill its readers.
///
/// Threads: any; look() one at a time.
class JobBoard final : public UseBoard {
 public:
  /// More samples than this would take too much memory.
  static constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 24;
  /// The suffix of its files.
  static constexpr std::string_view kSuffix = ".board";

  /// Errors: as SegmentFiles::create(); kInvalidArgument past kMostSamples
  static Result<std::unique_ptr<JobBoard>> open(const std::string& folder,
                                                Hash128 dataset,
                                                std::uint64_t samples);
  ~JobBoard() override;

  void begin_epoch(const Reading& reading) override;
  void used(std::uint64_t epoch, SampleId sample, ReadTurn next) override;

  /// Looks for other jobs. Blocks while the folder is listed.
  void look();
  /// The other jobs' plans for a sample.
  struct Wanted {
    std::uint64_t turns = 0;  ///< Until the first of them reads it.
    std::uint32_t jobs = 0;   ///< Those with a read of it in their epoch.
  };
  /// Nullopt if none of them knows of another read of it.
  std::optional<Wanted> wanted(SampleId sample) const;
  /// The number of other jobs at the last look().
  std::size_t others() const;
  std::uint64_t samples() const { return samples_; }

 private:
  class Mapped;
  struct Other {
    OwnedFd file;
    std::shared_ptr<const Mapped> board;  ///< Null: of another length.
  };
  JobBoard(std::string folder, std::string path, OwnedFd file,
           std::unique_ptr<Mapped> board, Hash128 dataset);
  void meet(const std::string& path);
  bool is_alive(const std::string& path, const OwnedFd& file) const;

  const std::string folder_;
  const std::string path_;
  const OwnedFd file_;
  const std::uint64_t samples_;
  const Hash128 dataset_;

  mutable Mutex mutex_;
  const std::unique_ptr<Mapped> mine_;
  std::uint64_t epoch_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint32_t ranks_ LEAT_GUARDED_BY(mutex_) = 1;
  std::vector<std::shared_ptr<const Mapped>> boards_ LEAT_GUARDED_BY(mutex_);
  std::map<std::string, Other> others_;  // Used by the caller of look().
};

}  // namespace leat
