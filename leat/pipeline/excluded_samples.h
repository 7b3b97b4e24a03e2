// The samples that a loader passes over, as far as it knows them.
#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "leat/base/error.h"
#include "leat/base/ids.h"
#include "leat/base/mutex.h"

namespace leat {

/// Why a sample is passed over.
enum class Excluded : std::uint8_t {
  kBad,      ///< It is missing, or its bytes are wrong.
  kSkipped,  ///< A function of the user's skips it.
};

/// Nullopt: an error that says nothing about the sample.
constexpr std::optional<Excluded> exclusion_by(ErrorCode code) {
  if (code == ErrorCode::kSkipped) return Excluded::kSkipped;
  if (code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound) {
    return Excluded::kBad;
  }
  return std::nullopt;
}

/// A sample that was read and is passed over from now on.
struct Exclusion {
  SampleId sample;  ///< In the dataset.
  Excluded why = Excluded::kBad;
  std::string key;
  std::string cause;         ///< The message of its error.
  std::string version = {};  ///< The bytes that were read: sample_version().
};

/// Samples that nobody has to read in order to pass over them. A bit each, in
/// 16 KiB for every 65,536 samples among which one is known.
///
/// Threads: any.
class ExcludedSamples {
 public:
  /// `found` is called for each sample that add() did not know, one at a time.
  using Found = std::function<void(const Exclusion&)>;
  explicit ExcludedSamples(Found found = {}) : found_(std::move(found)) {}

  std::optional<Excluded> find(SampleId sample) const;
  /// Does not call `found`.
  void know(SampleId sample, Excluded why);
  void add(const Exclusion& exclusion);
  std::uint64_t count(Excluded why) const;

 private:
  static constexpr std::uint64_t kChunk = 1 << 16;
  struct Chunk {
    std::bitset<kChunk> bad;
    std::bitset<kChunk> skipped;
  };
  bool put(SampleId sample, Excluded why) LEAT_REQUIRES(mutex_);

  const Found found_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::unique_ptr<Chunk>> chunks_
      LEAT_GUARDED_BY(mutex_);
  std::uint64_t bad_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t skipped_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat
