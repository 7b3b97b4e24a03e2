// The loader: batches of a dataset, in an order that is a function.
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
#include "leat/engine/loader_options.h"
#include "leat/engine/loader_rates.h"
#include "leat/engine/loader_stats.h"
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
///           call fails.
class Loader {
 public:
  /// Checks the options and starts the threads; no I/O.
  ///
  /// Errors: kInvalidArgument, naming the option and its allowed values.
  static Result<std::unique_ptr<Loader>> open(Dataset dataset,
                                              LoaderOptions options,
                                              const Env& env);
  /// If shards have no catalogue, begins to read them: the first epoch indexes
  /// them, and keeps the catalogue.
  static Result<std::unique_ptr<Loader>> open(LoaderSource source,
                                              LoaderOptions options,
                                              const Env& env);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// One pass over an epoch; a later one ends it.
  struct Iteration {
    std::uint64_t number = 0;
  };

  /// The result of next_within().
  class Next {
   public:
    static Next not_yet() { return Next(State::kNotYet); }
    static Next end() { return Next(State::kEnd); }
    explicit Next(Batch batch)
        : state_(State::kBatch), batch_(std::move(batch)) {}

    bool is_not_yet() const { return state_ == State::kNotYet; }
    bool is_end() const { return state_ == State::kEnd; }
    /// REQUIRES: neither of these.
    Batch& batch() { return batch_; }

   private:
    enum class State : std::uint8_t { kNotYet, kEnd, kBatch };
    explicit Next(State state) : state_(state) {}
    State state_;
    Batch batch_;
  };

  /// Starts the next epoch if the running one has delivered a batch, else goes
  /// on with it; after load_state() at the position loaded.
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
  /// next_within() without end.
  Result<Next> next(Iteration iteration);

  /// A copy of the batch that next() would bring; moves nothing. Waits at most
  /// `timeout`.
  Result<Next> peek_within(Nanoseconds timeout);

  /// begin() will start `epoch`, unless it is the one that load_state() is in.
  Result<void> set_epoch(std::uint64_t epoch);

  /// Tells the order of an epoch, or of a part of it that begins at
  /// `given.first`, replacing earlier calls. With `starts`, begin() starts
  /// there. REQUIRES: options().is_given.
  ///
  /// Errors:
  ///   kInvalidArgument  as GivenOrder::give(); load_state() is within that
  ///                     epoch, and its order was another
  Result<void> give_order(std::uint64_t epoch, GivenEpoch given, bool starts);
  /// How many samples epochs have that are yet to be told.
  /// REQUIRES: options().is_given.
  void expect_order_of(std::uint64_t samples);
  /// The epoch that begin() would start, or go on with.
  std::uint64_t next_epoch() const;

  /// The delivered position, as JSON: a few numbers, good for every rank and
  /// any world size.
  std::string state() const;
  /// Errors:
  ///   kInvalidArgument  not a state, of a newer version, or of other data,
  ///   seed
  ///                     or shuffle; the message names both values
  Result<void> load_state(std::string_view json);

  /// Batches that this rank gets in a whole epoch; nullopt while shards have
  /// yet to be indexed, or the order is yet to be told.
  std::optional<std::uint64_t> length() const;
  /// Batches of the running epoch that are yet to come; nullopt as above.
  std::optional<std::uint64_t> remaining() const;
  /// Without a catalogue while shards have yet to be indexed.
  Dataset dataset() const;
  /// The options with the open ones chosen: threads, max_in_flight,
  /// memory_bytes.
  const LoaderOptions& options() const;
  Rank rank() const;
  /// The names of the fields of a batch, in their order; none while shards have
  /// yet to be indexed.
  std::vector<std::string> field_names() const;
  /// How samples are dealt to ranks, in words: the same on all of them, or
  /// their batches do not fit together.
  std::string dealing() const;

  /// One entry for each epoch that was begun, the latest last.
  std::vector<EpochStats> stats() const;
  /// The same for the last minute, in any epoch.
  RecentStalls recent() const;
  /// Prices and energy in them are as of this call.
  std::shared_ptr<const Metrics> metrics() const;
  /// Its requests and their cost so far, as to_json(LedgerCounts).
  std::string ledger() const;
  /// The provider of its data: see OpenedStore.
  const std::optional<std::string>& provider() const;

  /// Its totals since it was opened. Any thread, at any time.
  LoaderRates rates() const;
  /// The waits of the latest steps that were delivered and not yet taken, at
  /// most 1,024; the oldest first. For one reader.
  std::vector<StepWait> take_waits();
  /// Bounds threads, requests in flight, bandwidth and cache of this rank from
  /// now on. A nullopt leaves the bound of the options, which are the most in
  /// any case. The tuner chooses within the bounds; if it is off, all is used.
  /// Nothing is cancelled: surplus work ends and is not begun again. Neither
  /// order nor content depends on it. If the cache holds more than its new
  /// bytes, the plan drops the records that are used furthest in the future;
  /// bytes that are added are there at once.
  void set_share(const Share& wanted);
  /// The most that set_share() can give.
  Share most_share() const;
  /// For a job of several nodes: the pace of a rank here, by the agent of this
  /// node; nullopt as long as it has told none. The caller tells the other
  /// nodes.
  std::optional<Pace> pace() const;
  /// The paces of the other nodes, all of them joined(), for the agent.
  void set_pace_elsewhere(const Pace& pace);

  /// The changes of its tuner, and those of its share of the node's caches, the
  /// latest last; at most the last 1,000 of each.
  std::vector<Decision> decisions() const;
  /// Explains the limit of its speed, by the latest observations. None: too
  /// little was seen, or the tuner is off.
  std::optional<Explanation> explanation() const;

  /// Waits until what its cache was offered so far is written, or was not
  /// taken. At once without a cache.
  void settle_cache();

  /// Ends everything that runs. Batches stay. May be called twice.
  void close();

 private:
  struct Machine;
  explicit Loader(std::unique_ptr<Machine> machine);

  std::unique_ptr<Machine> machine_;
};

}  // namespace leat
