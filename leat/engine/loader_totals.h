// A loader's totals since it was opened, which a tuner works from.
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

/// For one rank. All but `threads` and `in_flight` only grow: subtract two
/// readings to get a rate.
struct LoaderTotals {
  Nanoseconds elapsed{0};     ///< Since the loader was opened.
  std::uint64_t samples = 0;  ///< Delivered.
  std::uint64_t batches = 0;  ///< Delivered.
  std::uint64_t epochs = 0;   ///< Epochs begun.
  Nanoseconds wait{0};        ///< In iter() and next(); the sum of `stalls`.
  Nanoseconds waiting{0};     ///< Besides `wait`: the current wait in next().
  StallTimes stalls;          ///< As in stats(), over all epochs.
  Nanoseconds training{0};    ///< From a batch to the next call.

  std::uint64_t reads = 0;  ///< Finished requests, including retried ones.
  std::uint64_t read_bytes = 0;
  std::uint64_t retried = 0;
  std::uint64_t failed_reads = 0;  ///< They are among `reads`.
  std::uint64_t hedges = 0;        ///< Second requests for late reads.
  Nanoseconds read_time{0};    ///< Sum over requests, from sending to answer: /
                               ///< reads is the latency, / elapsed the number
                               ///< in flight.
  Nanoseconds read_wait{0};    ///< Sum over requests, waiting to be sent.
  std::uint64_t tasks = 0;     ///< Samples that threads have worked on.
  Nanoseconds busy{0};         ///< Sum over threads, in tasks.
  Nanoseconds cpu{0};          ///< Sum over threads, of CPU.
  std::uint64_t ram_hits = 0;  ///< Reads answered by each tier, or a peer.
  std::uint64_t disk_hits = 0;
  std::uint64_t peer_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t ram_allowed_bytes = 0;  ///< The most it may keep in each now.
  std::uint64_t disk_allowed_bytes = 0;
  std::uint64_t ram_bytes = 0;  ///< Kept by this process in each now.
  std::uint64_t disk_bytes = 0;
  std::uint64_t reserved_bytes = 0;  ///< Bytes of memory= in use now.

  std::size_t threads = 1;    ///< Threads that may work now.
  std::size_t in_flight = 1;  ///< Requests that may be in flight now.
  /// The present length of parts of large ranges; 0: ranges are not cut.
  std::uint64_t part_bytes = 0;
  std::uint64_t lookahead = 0;  ///< Samples, as in EpochStats; 0: no limit.

  std::uint64_t gets = 0;   ///< Requests sent for bytes: `reads` and others.
  std::uint64_t lists = 0;  ///< Requests sent for lists.
  /// The average bytes of a sample in its cache, if some are kept decoded; 0:
  /// none are, or it is unknown as yet.
  double kept_bytes = 0;
  /// Average thread seconds that a hit saves; 0 likewise.
  double saved_seconds = 0;
  double decoded_hits = 0;  ///< Samples whose hits have saved that.
  LedgerDollars dollars;    ///< The cost of gets and lists, and of `wait`.
};

/// Fills in what metrics count: requests, caches and memory.
void add_counts(const Metrics& metrics, LoaderTotals& totals);

}  // namespace leat
