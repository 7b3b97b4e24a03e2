// A loader's totals since it was opened, by which a tuner decides.
#pragma once
#include <cstddef>
#include <cstdint>

#include "leat/base/clock.h"
#include "leat/engine/ledger.h"
#include "leat/metrics/metrics.h"
#include "leat/metrics/stalls.h"

namespace leat {

/// A step's time in next().
struct StepWait {
  Nanoseconds wait{0};
  Stall cause = Stall::kHandover;  ///< The largest.
};

/// For one rank. All but `threads` and `in_flight` only grow: take two and
/// subtract to get a rate.
struct LoaderRates {
  Nanoseconds elapsed{0};     ///< Since the loader was opened.
  std::uint64_t samples = 0;  ///< Delivered.
  std::uint64_t batches = 0;  ///< Delivered.
  std::uint64_t epochs = 0;   ///< Begun.
  Nanoseconds wait{0};        ///< In iter() and next(); the sum of `stalls`.
  Nanoseconds waiting{0};     ///< Beside `wait`: in a next() that is not over.
  StallTimes stalls;          ///< As stats() has them, over all epochs.
  Nanoseconds training{0};    ///< Between a batch and the asking for the next.

  std::uint64_t reads = 0;  ///< Requests that are over, retried too.
  std::uint64_t read_bytes = 0;
  std::uint64_t retried = 0;
  Nanoseconds read_time{0};    ///< Sum over requests, from sent to answered:
                               ///< / reads is the latency, / elapsed how many
                               ///< were in flight.
  Nanoseconds read_wait{0};    ///< Sum over requests, for a place in flight.
  std::uint64_t tasks = 0;     ///< Samples that threads have worked on.
  Nanoseconds busy{0};         ///< Sum over threads, in tasks.
  Nanoseconds cpu{0};          ///< Sum over threads, of CPU.
  std::uint64_t ram_hits = 0;  ///< Reads that each tier answered, or a peer.
  std::uint64_t disk_hits = 0;
  std::uint64_t peer_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t ram_allowed_bytes = 0;  ///< That it may keep in each, now.
  std::uint64_t disk_allowed_bytes = 0;
  std::uint64_t ram_bytes = 0;  ///< That this process keeps in each, now.
  std::uint64_t disk_bytes = 0;
  std::uint64_t reserved_bytes = 0;  ///< Bytes of memory= in use now.

  std::size_t threads = 1;    ///< That may work now.
  std::size_t in_flight = 1;  ///< Requests that may be in flight now.
  /// How long parts of large ranges are now; 0: they stay as they are.
  std::uint64_t part_bytes = 0;
  std::uint64_t lookahead = 0;  ///< Samples, as EpochStats has it; 0: no limit.

  std::uint64_t gets = 0;   ///< Requests sent for bytes: `reads`, and others.
  std::uint64_t lists = 0;  ///< Requests sent for lists.
  /// The average bytes of a sample in its cache, if some are kept decoded; 0:
  /// none are, or it is not yet known.
  double kept_bytes = 0;
  /// Average seconds of a thread that a hit saves: the same.
  double saved_seconds = 0;
  double decoded_hits = 0;  ///< Samples that hits spared that much, so far.
  LedgerDollars dollars;    ///< Prices of gets and lists, and of `wait`.
};

/// Fills in what metrics count: requests, caches and memory.
void add_counts(const Metrics& metrics, LoaderRates& rates);

}  // namespace leat
