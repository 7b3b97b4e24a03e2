// Decides what a cache keeps, without touching bytes.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

/// A moment on the clock of the job: epoch * T + position. It never decreases
/// during a run. T is constant for a run: the number of samples of the dataset
/// if lengths of time matter (`window`), otherwise kEpochTime.
using AccessTime = std::uint64_t;

/// More than the samples of any epoch, so that times can be given before their
/// number is known.
inline constexpr AccessTime kEpochTime = AccessTime{1} << 40;

/// Later than any use that is looked for.
inline constexpr AccessTime kNever = std::numeric_limits<AccessTime>::max();

/// Decides which samples one tier of a cache holds.
///
/// It knows names and sizes, never bytes: a tier asks it and obeys, and the
/// simulator asks the same object. Its answers depend only on the calls. `drop`
/// is appended to, never cleared; samples added to it are no longer held, and
/// the caller frees their bytes.
///
/// Each call takes at most O(log held), apart from the drops it orders.
///
/// Threads: one at a time.
class CachePolicy {
 public:
  virtual ~CachePolicy() = default;

  /// A held sample was read at `now` and will be read again at `next_use`.
  /// REQUIRES: holds(sample).
  virtual void used(SampleId sample, AccessTime now, AccessTime next_use,
                    std::vector<SampleId>& drop) = 0;

  /// A sample that is not held was read, and will be read again at `next_use`:
  /// should it be kept? If not, drops nothing. Also tells a new policy what a
  /// tier already holds. REQUIRES: !holds(sample), sample < spec.samples.
  virtual bool admit(SampleId sample, std::uint64_t bytes, AccessTime now,
                     AccessTime next_use, std::vector<SampleId>& drop) = 0;

  /// The tier no longer has the sample (torn, punched, or not written after
  /// all). Does nothing if it was not held.
  virtual void lost(SampleId sample) = 0;

  /// From now on the policy holds at most this much, in the unit of its spec.
  /// It drops samples in its own order until the rest fits: the one next used
  /// last, the one unused longest, the first in or, for never_evict, the last
  /// admitted. Takes O(samples) at most, beside the drops.
  virtual void set_capacity(std::uint64_t capacity,
                            std::vector<SampleId>& drop) = 0;

  virtual bool holds(SampleId sample) const = 0;
  /// The sum of the sizes of the samples held. At most the capacity, if the
  /// capacity counts bytes.
  virtual std::uint64_t held_bytes() const = 0;
  virtual std::uint64_t held_items() const = 0;
};

/// The unit that a capacity counts.
enum class CapacityUnit : std::uint8_t { kBytes, kItems };

/// A policy and its size.
struct CachePolicySpec {
  /// The most samples of a dataset that a policy can be made for.
  static constexpr std::uint64_t kMaxSamples = 0xfffffffe;

  /// One of cache_policy_names():
  ///   belady drops the sample used furthest in the future, and refuses
  ///                    one that is used later than all it holds (L. A. Belady,
  ///                    IBM Systems Journal 5(2), 1966; with bypass)
  ///   windowed_belady the same for uses less than `window` away: a sample not
  ///                    used within it is dropped after use (Bagpipe, SOSP
  ///                    2023)
  ///   never_evict keeps what comes until it is full (CoorDL's MinIO, VLDB
  ///                    2021); with `planned`, only what that says (its
  ///                    partitioned form, and NoPFS' placement, SC21)
  ///   lru              drops what was used longest ago
  ///   fifo             drops what was admitted longest ago (DELI, IC2E 2021)
  std::string name = "belady";
  std::uint64_t samples = 0;  ///< N.
  std::uint64_t capacity = 0;
  CapacityUnit unit = CapacityUnit::kBytes;
  AccessTime window = 0;  ///< windowed_belady: at least 1.
  /// windowed_belady: reads of an epoch, if the times it is given are
  /// kEpochTime apart between epochs; 0: they are N apart, as it counts.
  std::uint64_t epoch_reads = 0;
  /// never_evict: true for the samples that this tier may hold; null: all.
  std::function<bool(SampleId)> planned = nullptr;
};

/// The names that a spec may have.
std::span<const std::string_view> cache_policy_names();

/// Takes 4 bytes for each sample up to the largest held, and at most 32 for
/// each held sample.
///
/// Errors:
///   kInvalidArgument  an unknown name, a window that is missing or is not
///                     asked for, more than kMaxSamples
Result<std::unique_ptr<CachePolicy>> make_cache_policy(
    const CachePolicySpec& spec);

}  // namespace leat
