// Completes a loader's options and derives its part of a job.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "leat/base/env.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/loader/allowance.h"
#include "leat/engine/loader_options.h"
#include "leat/engine/unindexed.h"
#include "leat/plan/dealing.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/mixed_order.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"
#include "leat/runtime/limits.h"

namespace leat {

/// A loader's part of a job. Constant once the loader is open, so any thread
/// may read it.
struct Job {
  LoaderOptions options;
  Rank rank;
  Rank process;  ///< Its place among all processes; see LoaderOptions.
  Rank local;    ///< Its place among the processes of this node.
  bool knows_node = true;  ///< The number of these processes is known.
  Tail tail = Tail::kKeep;
  OrderOptions order;
  std::shared_ptr<GivenOrder> told_order;   ///< Null unless `options.is_given`.
  std::shared_ptr<const MixedOrder> mixed;  ///< Null unless `options.mix`.
  /// Identifies the data in a state. A stream has it without a catalogue.
  std::string data_digest;
  /// The bytes of all objects; 0 if neither cache nor tuner needs them.
  std::uint64_t data_bytes = 0;
  RankRun readers;  ///< The ranks that read this rank's cache.

  Locality locality() const {
    return rank.world_size > 1 ? options.locality : Locality::kNone;
  }
  /// The epoch that the order begins with.
  std::uint64_t first_epoch() const {
    return mixed == nullptr ? 0 : mixed->options().first_epoch;
  }
  /// How many positions ahead a cached sample may be delivered.
  std::uint64_t first_within() const {
    return options.cache ? options.cache->first_within : 0;
  }
  /// Whether shards are read in pieces. Several ranks do that where each reads
  /// its own part of the line of pieces, or its own run of each step.
  bool reads_pieces(Layout layout) const;
  /// Whether the ranks of a stream get the samples of shards of their own.
  bool deals_by_shard(Layout layout) const {
    return rank.world_size > 1 && layout == Layout::kShards &&
           order.shuffle == Shuffle::kStream && may_deal_by_shard(options);
  }
  /// With several ranks each gets its own file: "t.json", "t.rank3.json".
  std::string file_of_rank(const std::string& file) const;
  /// The same for each process, with its number.
  std::string file_of_process(const std::string& file) const;
};

/// The bytes of LoaderOptions::memory_bytes unless they are given.
std::uint64_t usual_memory_bytes(const Limits& limits);

/// Settles which rank this process is and in which order it reads. `catalogue`
/// is null while shards are being indexed.
///
/// Errors: kInvalidArgument: as read_launch(), or an impossible option
Result<void> settle_rank(Job& job, const Env& env);
void settle_order(Job& job, const Catalogue* catalogue);
/// Settles the order of a mix. REQUIRES: the rank is settled.
/// Errors: as MixedOrder::make; kInvalidArgument: sources in a stream, or
///         beside an order of another kind
Result<void> settle_mix(Job& job, const Catalogue* catalogue,
                        std::uint64_t global_batch);
/// Settles what happens to the samples that do not fill a step.
/// Errors: kInvalidArgument
Result<void> settle_tail(Job& job);

/// The batch size of all ranks together. Errors: kInvalidArgument
Result<std::uint64_t> global_batch_of(const LoaderOptions& options, Rank rank);

/// Chooses threads, requests and memory where the options leave them open, and
/// returns what this rank may use.
///
/// Errors: kInvalidArgument: more than is possible
Result<Allowance> settle_limits(Job& job, const Limits& limits,
                                const Catalogue* catalogue);
/// Logs how ranks share the limits, once a process.
void tell_shares(const Job& job, const RankLimits& mine);

/// Checks that the options which decide the order and place of samples agree.
///
/// Errors: kInvalidArgument, which names both options and the remedy
Result<void> check_locality(const Job& job);
Result<void> check_drawn(const Job& job, const Dataset& dataset);
Result<void> check_first_within(const Job& job, const Catalogue* catalogue);
Result<void> check_fetch_ahead(const Job& job, const Catalogue* catalogue);

}  // namespace leat
