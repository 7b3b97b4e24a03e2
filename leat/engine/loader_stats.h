// A loader's report on its epochs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/hash.h"
#include "leat/metrics/stalls.h"

namespace leat {

/// The time of threads, summed over them.
struct ThreadTimes {
  Nanoseconds busy{0};  ///< In tasks.
  Nanoseconds cpu{0};   ///< The part of it spent on a core.
  /// The part of it spent waiting for a lock of the user's functions: Python's.
  Nanoseconds locked{0};

  ThreadTimes operator-(const ThreadTimes& earlier) const {
    return {.busy = busy - earlier.busy,
            .cpu = cpu - earlier.cpu,
            .locked = locked - earlier.locked};
  }
};

/// One epoch, or the part of it seen so far, on this rank.
struct EpochStats {
  std::uint64_t epoch = 0;
  std::uint64_t samples = 0;       ///< Delivered.
  std::uint64_t substituted = 0;   ///< Those that replaced bad ones.
  std::uint64_t skipped = 0;       ///< Those that replaced skipped ones.
  Nanoseconds elapsed{0};          ///< From iter() to the last batch.
  Nanoseconds first_batch{0};      ///< From iter() to the first batch.
  Nanoseconds wait{0};             ///< In iter() and next().
  StallTimes stalls;               ///< Add up to exactly `wait`.
  StallTimes first_stalls;         ///< The part until the first batch.
  std::uint64_t late_batches = 0;  ///< Asked for before they were ready.
  std::uint64_t late_with_full_window = 0;  ///< With all requests in flight.
  std::uint64_t gets = 0;  ///< Reads sent, retried ones included.
  std::uint64_t retried = 0;
  std::uint64_t ahead = 0;  ///< Reads of the next epoch, sent during this one.
  /// The latest limit on samples planned and not yet delivered; 0 if memory
  /// alone is the limit (pieces of shards).
  std::uint64_t lookahead = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t ram_hits = 0;  ///< Reads that the RAM tier answered.
  std::uint64_t disk_hits = 0;
  std::uint64_t peer_hits = 0;
  /// Hits of a sample that was kept decoded.
  std::uint64_t decoded_hits = 0;
  std::uint64_t misses = 0;  ///< Reads that went to the store.
  Hash128 order_hash;
  Hash128 content_hash;
  /// Times of the loader's threads, until the last batch.
  ThreadTimes threads;
  std::string verdict;  ///< See verdict.h; empty until it ends.

  /// Takes a sample into the order hash: h' = XXH3-128(h, id).
  void add_to_order(std::uint64_t sample_id);
  double wait_fraction() const;
};

/// The JSON object of an epoch in `leat bench --json` and `Loader.stats()`.
std::string to_json(const EpochStats& stats, bool has_hashes);

}  // namespace leat
