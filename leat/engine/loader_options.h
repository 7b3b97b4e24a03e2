// A loader's options. Every option has the same name in Python and in `leat`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/units.h"
#include "leat/engine/cache_options.h"
#include "leat/engine/shuffle_choice.h"
#include "leat/pipeline/delivered_field.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/run_context.h"
#include "leat/plan/dealing.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/fetch_ahead.h"
#include "leat/plan/mixed_order.h"
#include "leat/plan/order.h"

namespace leat {

/// Whether threads and requests in flight are tuned, and from which values on
/// (tune/tuner.h). `threads` and `max_in_flight` are then upper bounds.
struct TuneOptions {
  bool is_on = true;  ///< LEAT_TUNE=off in the environment turns it off.
  /// The first value for this rank; 0: as many as without tuning.
  std::size_t start_threads = 0;
  std::size_t start_in_flight = 0;
  /// A file for the tuner's observations, for `leat explain --replay`; empty:
  /// none. With several ranks each writes its own: see `LoaderOptions::trace`.
  std::string trace;
};

/// A larger number is taken for a typing error.
inline constexpr std::size_t kMostThreads = 4096;
inline constexpr std::size_t kMostInFlight = std::size_t{1} << 20;

struct LoaderOptions {
  /// Samples a step over all ranks; 0 if `batch_size` is given instead.
  std::uint64_t global_batch_size = 0;
  /// Samples a step of each rank; 0 if `global_batch_size` is given instead.
  std::uint64_t batch_size = 0;
  /// The rank of this process; nullopt asks the launcher's environment.
  std::optional<Rank> rank;
  /// This process among all of the job, if that is not its rank: the processes
  /// of tensor, pipeline or context parallelism have one rank. Nullopt: each
  /// rank is a process, of the same number.
  std::optional<Rank> process = std::nullopt;

  ShuffleChoice shuffle = ShuffleChoice::kAuto;
  /// Draws samples by weight, with replacement; null: no such draws. `shuffle`
  /// then only decides whether a tail is dropped.
  std::shared_ptr<const WeightedOrder> weights = nullptr;
  /// Takes the dataset for sources, one after the other, whose samples come by
  /// turns. `shuffle` is that of each source; not kStream. kPerSource knows the
  /// global batch itself.
  std::optional<MixOptions> mix = std::nullopt;
  /// Loader::give_order() sets the order of each epoch before it begins.
  bool is_given = false;
  std::uint64_t seed = 0;
  /// Pieces of shards that a block shuffle, or a stream, mixes at a time.
  /// Nullopt: usual_window(), which the sources of a mix divide.
  std::optional<std::uint32_t> shuffle_window;
  /// Deals the samples of a step to the ranks whose caches hold them. Must
  /// be the same on all ranks. With kRemap and kBalance, `cache` must be
  /// the same on all ranks too, and must give its sizes: each rank
  /// simulates the caches of all.
  Locality locality = Locality::kNone;
  /// nullopt: dropped if shuffled, kept if not.
  std::optional<bool> drop_last;
  /// Fills the last step with the epoch's first positions. Adds `valid`, false
  /// for these, with `ids` or if `fields` names it.
  bool pad = false;
  /// Ranks may have one batch more than others. Otherwise a kept tail that
  /// leaves some ranks without a batch is refused.
  bool join = false;
  /// The number of epochs, if known: nothing is fetched past them.
  std::optional<std::uint64_t> epochs;

  std::vector<OpSpec> ops;
  std::vector<std::string> fields;  ///< Empty: all of them.
  /// The receiver of a batch takes its samples apart, so they may differ in
  /// shape.
  bool has_collate = false;
  bool ids = false;  ///< Adds `index`, `key` and, if padded, `valid`.
  OnError on_error = OnError::kRaise;
  /// Steps are planned by the lengths of their samples, so nothing may take the
  /// place of one, not even where a function passes over it: next() fails.
  bool keeps_samples = false;
  /// The names of functions that skip samples, and skip the same ones in every
  /// run: their answers are kept. Such a function fails with kSkipped and its
  /// name.
  std::vector<std::string> recorded_filters;
  bool hashes = true;  ///< Order and content hashes in stats().
  /// Logs what an epoch of a second or more has waited for.
  bool tells_verdict = true;

  /// The most bytes that this node's ranks together may hold in preparation;
  /// nullopt: 2 GiB, but at most a quarter of what this process may use. If ops
  /// decode pictures, a quarter of it is for what decoders hold: see
  /// ImageHeader::working_bytes.
  std::optional<std::uint64_t> memory_bytes;
  /// Decoding threads on this node; 0: one for each usable CPU.
  std::size_t threads = 0;
  /// Requests in flight on this node; 0: 128.
  std::size_t max_in_flight = 0;
  /// For comparison, reads ahead as DELI does: in fetches of F samples,
  /// whenever T or fewer of the requested ones remain, and never into the next
  /// epoch. Nullopt: reads as far ahead as plan/lookahead.h says.
  std::optional<FetchAheadOptions> fetch_ahead;
  /// Keeps what was fetched for later epochs; nullopt: nothing is kept.
  std::optional<CacheOptions> cache;
  /// A file for a trace (trace.h); empty: none. With several ranks each writes
  /// its own: "t.json" becomes "t.rank3.json".
  std::string trace;
  /// A file for an order log (order_log/entries.h); empty: none. With several
  /// ranks each writes its own, as with `trace`, and a file that is there is
  /// never replaced: the next is "t.2.order".
  std::string order_log;
  TuneOptions tune;
};

/// Whether ranks deal the samples of a stream by their shards (ShardHomes),
/// whatever there is at its place. A record of a cache is a whole piece, which
/// ranks share otherwise.
inline bool may_deal_by_shard(const LoaderOptions& options) {
  return options.shuffle == ShuffleChoice::kStream && !options.cache &&
         options.weights == nullptr && !options.is_given && !options.mix &&
         options.locality == Locality::kNone && !options.fetch_ahead;
}

}  // namespace leat
