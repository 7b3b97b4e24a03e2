// A loader's options, with those that were left open chosen.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "leat/base/env.h"
#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/engine/loader/allowance.h"
#include "leat/engine/loader_options.h"
#include "leat/engine/unindexed.h"
#include "leat/plan/dealing.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/order.h"
#include "leat/plan/steps.h"
#include "leat/runtime/limits.h"

namespace leat {

/// A loader's part of a job: constant once the loader is open, so any thread
/// may read it.
struct Job {
  LoaderOptions options;
  Rank rank;
  Rank local;  ///< Among the processes of this node.
  Tail tail = Tail::kKeep;
  OrderOptions order;
  std::shared_ptr<GivenOrder> told_order;  ///< Null unless `options.is_given`.
  /// Says in a state which data it is of. A stream has it before its catalogue.
  std::string data_digest;
  /// The bytes of all objects; 0 if neither cache nor tuner asks.
  std::uint64_t data_bytes = 0;
  RankRun readers;  ///< The ranks that read from this rank's cache.

  Locality locality() const {
    return rank.world_size > 1 ? options.locality : Locality::kNone;
  }
  /// How many positions ahead samples may come because they are cached.
  std::uint64_t first_within() const {
    return options.cache ? options.cache->first_within : 0;
  }
  /// With several ranks each has its own file: "t.json", "t.rank3.json".
  std::string file_of_rank(const std::string& file) const;
};

/// Says who this process is and in which order it reads. A null `catalogue` is
/// of shards that are being indexed.
///
/// Errors: kInvalidArgument, as read_launch(), or an option that cannot be
Result<void> settle_rank(Job& job, const Env& env);
void settle_order(Job& job, const Catalogue* catalogue);
/// Says what becomes of the samples that fill no step.
/// Errors: kInvalidArgument
Result<void> settle_tail(Job& job);

/// The batch of all ranks. Errors: kInvalidArgument
Result<std::uint64_t> global_batch_of(const LoaderOptions& options, Rank rank);

/// Chooses threads, requests and memory where the options leave them open, and
/// says what this rank may use of them.
///
/// Errors: kInvalidArgument: past what there can be
Result<Allowance> settle_limits(Job& job, const Limits& limits);
/// Tells how ranks share them, once a process.
void tell_shares(const Job& job, const RankLimits& mine);

/// Checks that options which say what comes when, and where, agree.
///
/// Errors: kInvalidArgument, naming both and the remedy
Result<void> check_locality(const Job& job);
Result<void> check_drawn(const Job& job, const Dataset& dataset);
Result<void> check_first_within(const Job& job, const Catalogue* catalogue);
Result<void> check_fetch_ahead(const Job& job, const Catalogue* catalogue);

}  // namespace leat
