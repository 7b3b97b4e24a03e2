// Decides what a cache keeps, apart from the bytes.
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

/// A moment on the clock of the job: epoch * T + position. It never falls along
/// a run. T is the same for all of one run: the samples of the dataset where
/// lengths of time matter (`window`), else kEpochTime.
using AccessTime = std::uint64_t;

/// More than any epoch has samples, so that times can be told before their
/// number is known.
inline constexpr AccessTime kEpochTime = AccessTime{1} << 40;

/// Later than every use that is looked for.
inline constexpr AccessTime kNever = std::numeric_limits<AccessTime>::max();

/// Which samples one tier of a cache holds.
///
/// It knows names and sizes, never bytes: a tier asks it and does what it says,
/// and the simulator asks the same object. Its answers depend on the calls
/// alone. `drop` is appended to, never cleared; samples put there are no longer
/// held, and the caller gives their bytes up.
///
/// Each call is O(log held) at most, but for the drops it orders.
///
/// Threads: one at a time.
class CachePolicy {
 public:
  virtual ~CachePolicy() = default;

  /// A held sample was read at `now` and is read again at `next_use`.
  /// REQUIRES: holds(sample).
  virtual void used(SampleId sample, AccessTime now, AccessTime next_use,
                    std::vector<SampleId>& drop) = 0;

  /// A sample that is not held was read, and is read again at `next_use`: is it
  /// kept? Drops nothing if it is not. Also the way to tell a new policy what a
  /// tier already holds. REQUIRES: !holds(sample), sample < spec.samples.
  virtual bool admit(SampleId sample, std::uint64_t bytes, AccessTime now,
                     AccessTime next_use, std::vector<SampleId>& drop) = 0;

  /// The tier no longer has it (torn, punched, not written after all). Nothing
  /// happens if it was not held.
  virtual void lost(SampleId sample) = 0;

  /// From now on the policy holds at most so much, in the unit of its spec. It
  /// drops samples in its own order until the rest fits: the one used furthest
  /// in the future, the one unused longest, the first in or, for never_evict,
  /// the last admitted. Takes O(samples) at most, beside the drops.
  virtual void set_capacity(std::uint64_t capacity,
                            std::vector<SampleId>& drop) = 0;

  virtual bool holds(SampleId sample) const = 0;
  /// The sum of the sizes of the samples held. At most the capacity, if that is
  /// counted in bytes.
  virtual std::uint64_t held_bytes() const = 0;
  virtual std::uint64_t held_items() const = 0;
};

/// The unit that a capacity counts.
enum class CapacityUnit : std::uint8_t { kBytes, kItems };

/// Which policy, and how large.
struct CachePolicySpec {
  /// The most samples of a dataset that a policy can be made for.
  static constexpr std::uint64_t kMaxSamples = 0xfffffffe;

  /// One of cache_policy_names():
  ///   belady           drops what is used furthest in the future, and refuses
  ///                    what is used later than all it holds (L. A. Belady,
  ///                    IBM Systems Journal 5(2), 1966; with bypass)
  ///   windowed_belady  the same, of uses less than `window` away: what is not
  ///                    used within it is dropped after use (Bagpipe, SOSP
  ///                    2023)
  ///   never_evict      keeps what comes until it is full (CoorDL's MinIO, VLDB
  ///                    2021); with `planned`, only what that says (its
  ///                    partitioned form, and NoPFS' placement, SC21)
  ///   lru              drops what was used longest ago
  ///   fifo             drops what was admitted longest ago (DELI, IC2E 2021)
  std::string name = "belady";
  std::uint64_t samples = 0;  ///< N.
  std::uint64_t capacity = 0;
  CapacityUnit unit = CapacityUnit::kBytes;
  AccessTime window = 0;  ///< windowed_belady: at least 1.
  /// windowed_belady: reads of an epoch, if the times that it is told are
  /// kEpochTime apart from epoch to epoch; 0: they are N apart, as it counts.
  std::uint64_t epoch_reads = 0;
  /// never_evict: true for the samples that this tier may hold; null: for all.
  std::function<bool(SampleId)> planned = nullptr;
};

/// The names that a spec may have.
std::span<const std::string_view> cache_policy_names();

/// Takes 4 bytes a sample up to the largest that was held, and at most 32 a
/// sample held.
///
/// Errors:
///   kInvalidArgument  a name that is none, a window that is missing or is not
///                     asked for, more than kMaxSamples
Result<std::unique_ptr<CachePolicy>> make_cache_policy(
    const CachePolicySpec& spec);

}  // namespace leat
