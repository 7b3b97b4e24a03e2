// The loader: batches of a dataset, in a reproducible order.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/engine/dataset.h"
#include "leat/engine/loader/position.h"
#include "leat/engine/loader_options.h"
#include "leat/engine/loader_stats.h"
#include "leat/engine/loader_totals.h"
#include "leat/engine/unindexed.h"
#include "leat/metrics/metrics.h"
#include "leat/metrics/rolling_stalls.h"
#include "leat/pipeline/batch.h"
#include "leat/tune/decision.h"
#include "leat/tune/explain.h"
#include "leat/tune/pace.h"
#include "leat/tune/share.h"

namespace leat {

/// Iterates over the batches of one rank, epoch after epoch.
///
///     LEAT_TRY(Dataset dataset, open_dataset(url, {}, {}, env, {}));
///     LEAT_TRY(auto loader, Loader::open(dataset, options, env));
///     LEAT_TRY(const Loader::Iteration epoch, loader->begin());
///     while (true) {
///       LEAT_TRY(Loader::Next next, loader->next(epoch));
///       if (next.is_end()) break;
///       train(next.batch());
///     }
///
/// Threads:  any; calls that move the position serialise. stats(), state() and
///           close() may come from another thread while next_within() waits.
/// Lifetime: batches outlive it. Destruction closes it. In a forked child every
///           call that may fail does, and close() does nothing; a call that
///           returns no Result may wait forever there: see check_process().
class Loader {
 public:
  /// Checks the options and starts the threads; no I/O.
  ///
  /// Errors: kInvalidArgument, naming the option and its allowed values.
  static Result<std::unique_ptr<Loader>> open(Dataset dataset,
                                              LoaderOptions options,
                                              const Env& env);
  /// If shards have no catalogue, begins to read them: the first epoch indexes
  /// them and keeps the catalogue.
  static Result<std::unique_ptr<Loader>> open(LoaderSource source,
                                              LoaderOptions options,
                                              const Env& env);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// One pass over an epoch; starting a later one ends it.
  struct Iteration {
    std::uint64_t number = 0;
  };

  /// The result of next_within().
  class Next {
   public:
    static Next not_yet() { return Next(State::kNotYet); }
    static Next end() { return Next(State::kEnd); }
    Next(Batch batch, BatchPlace place)
        : state_(State::kBatch),
          batch_(std::move(batch)),
          place_(std::move(place)) {}

    bool is_not_yet() const { return state_ == State::kNotYet; }
    bool is_end() const { return state_ == State::kEnd; }
    /// REQUIRES: the result is a batch.
    Batch& batch() { return batch_; }
    const BatchPlace& place() const { return place_; }

   private:
    enum class State : std::uint8_t { kNotYet, kEnd, kBatch };
    explicit Next(State state) : state_(state) {}
    State state_;
    Batch batch_;
    BatchPlace place_;
  };

  /// Starts the next epoch if the running one has delivered a batch, otherwise
  /// continues it; after load_state(), at the position loaded.
  Result<Iteration> begin();

  /// Waits for the next batch, at most `timeout`.
  ///
  /// Errors:
  ///   kInvalidArgument    `iteration` was ended by a later one, or the loader
  ///                       was closed, or this is a forked child
  ///   kCorrupt, kNotFound a bad sample, named with its cause (on_error=raise)
  ///   kResourceExhausted  one batch does not fit into `memory_bytes`
  ///   others              what the store said once retries were exhausted
  Result<Next> next_within(Iteration iteration, Nanoseconds timeout);
  /// next_within() without a timeout.
  Result<Next> next(Iteration iteration);

  /// begin() of a rank that needs no data, such as a stage in the middle of a
  /// pipeline: nothing is read. skip() takes the place of next().
  ///
  /// Errors: kInvalidArgument: shards have yet to be indexed, or the order of
  ///           the epoch has yet to be given
  Result<Iteration> begin_skipping();
  /// Moves the position behind the next step, as next() does on other ranks.
  /// Returns the place of that step's batch; nullopt: the epoch has ended.
  ///
  /// Errors: kInvalidArgument: `iteration` was ended, as for next_within()
  Result<std::optional<BatchPlace>> skip(Iteration iteration);
  /// False once a later iteration, set_epoch() or load_state() has ended it,
  /// and in a closed loader.
  bool is_current(Iteration iteration) const;

  enum class Memory : std::uint8_t { kACopy, kOfTheBatch };
  /// The batch that next() would return; does not advance. Waits at most
  /// `timeout`; for a batch in its own memory as an onlooker, for whom nothing
  /// is fetched sooner. A reader of the batch's own memory has to be done
  /// before somebody writes to the batch that next() returns.
  Result<Next> peek_within(Nanoseconds timeout, Memory memory = Memory::kACopy);

  /// begin() will start `epoch`, unless load_state() has set a position in it.
  Result<void> set_epoch(std::uint64_t epoch);

  /// Gives the order of an epoch, or of the part of it that begins at
  /// `given.first`, replacing earlier calls. With `starts`, begin() starts at
  /// that part. REQUIRES: options().is_given.
  ///
  /// Errors:
  ///   kInvalidArgument  as GivenOrder::give(); load_state() is within that
  ///                     epoch, and its order was another
  Result<void> give_order(std::uint64_t epoch, GivenEpoch given, bool starts);
  /// Sets how many samples an epoch has whose order is not given yet.
  /// REQUIRES: options().is_given.
  void expect_order_of(std::uint64_t samples);
  /// The epoch that begin() would start or continue.
  std::uint64_t next_epoch() const;

  /// The delivered position, as JSON: a few numbers, good for every rank and
  /// any world size.
  std::string state() const;
  /// Errors:
  ///   kInvalidArgument  not a state, of a newer version, or of other data,
  ///   seed
  ///                     or shuffle; the message names both values
  Result<void> load_state(std::string_view json);

  /// The number of batches of this rank in a whole epoch; nullopt while shards
  /// have yet to be indexed, or the order has yet to be given.
  std::optional<std::uint64_t> length() const;
  /// The number of batches that remain in the running epoch; nullopt as above.
  std::optional<std::uint64_t> remaining() const;
  /// Has no catalogue while shards have yet to be indexed.
  Dataset dataset() const;
  /// The options with defaults filled in: threads, max_in_flight,
  /// memory_bytes.
  const LoaderOptions& options() const;
  Rank rank() const;
  /// The names of the fields of a batch, in their order; none while shards have
  /// yet to be indexed.
  std::vector<std::string> field_names() const;
  /// Describes how samples are dealt to ranks. All ranks must agree on it, or
  /// their batches do not fit together.
  std::string dealing() const;

  /// One entry for each epoch that has begun, the latest last.
  std::vector<EpochStats> stats() const;
  /// The same for the last minute, across epochs.
  RecentStalls recent() const;
  /// Prices and energy are brought up to date by this call.
  std::shared_ptr<const Metrics> metrics() const;
  /// Its requests and their cost so far, as to_json(LedgerCounts).
  std::string ledger() const;
  /// The provider that holds its data: see OpenedStore.
  const std::optional<std::string>& provider() const;

  /// Its totals since it was opened. May be called from any thread at any time.
  LoaderTotals totals() const;
  /// The waits of the latest steps that were delivered and not yet taken, at
  /// most 1,024, the oldest first. Meant for one reader.
  std::vector<StepWait> take_waits();
  /// Bounds this rank's threads, requests in flight, bandwidth and cache from
  /// now on. A nullopt restores the bound set by the options, which is never
  /// exceeded. The tuner chooses within the bounds; if it is off, all is used.
  /// Nothing is cancelled: surplus work finishes and is not started again.
  /// Neither order nor content depends on it. If the cache holds more than its
  /// new bound, the plan drops the records whose next use is furthest away;
  /// added bytes can be used immediately.
  void set_share(const Share& wanted);
  /// The most that set_share() can give.
  Share most_share() const;
  /// For a job of several nodes: the pace of a rank on this node, as its agent
  /// reports it; nullopt until the agent has reported one. The caller passes it
  /// to the other nodes.
  std::optional<Pace> pace() const;
  /// Sets the paces of the other nodes, combined by joined(), for the agent.
  void set_pace_elsewhere(const Pace& pace);

  /// The changes that its tuner made, those of its share of the node's caches,
  /// and the beginnings and ends of times in which its store throttles, the
  /// latest last; at most the last 1,000 of each.
  std::vector<Decision> decisions() const;
  /// Explains what limits its speed, from the latest observations. None: too
  /// little was seen, or the tuner is off.
  std::optional<Explanation> explanation() const;

  /// Waits until all that its cache was offered so far is written or was
  /// refused. Returns immediately without a cache.
  void settle_cache();

  /// Stops everything that runs. Batches stay valid. May be called twice.
  /// REQUIRES: !is_in_own_function().
  void close();

  /// True on a thread that runs a user's function for this loader: whatever
  /// waits for that thread would wait forever there.
  bool is_in_own_function() const;

  // loader/undelivered.h
  friend Result<bool> wait_for_next(Loader& loader, Iteration iteration,
                                    Nanoseconds timeout);
  friend void put_back(Loader& loader, const BatchPlace& place, Error why);
  friend Result<BatchPlace> next_place(const Loader& loader);

 private:
  struct Machine;
  explicit Loader(std::unique_ptr<Machine> machine);
  friend Result<void> check_process(const Loader& loader);

  std::unique_ptr<Machine> machine_;
};

/// Takes no lock: at the fork another thread may have held any.
/// Errors: kInvalidArgument: this process is a forked child of the one that
/// made
///           the loader
Result<void> check_process(const Loader& loader);

}  // namespace leat
