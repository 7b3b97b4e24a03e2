// One fetch of a record for all processes that share tiers.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <unordered_set>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/cache/record_claims.h"

namespace leat {

/// The questions of FetchTurns to the tiers. Called on its thread alone.
struct SharedTiers {
  /// Sees what others have written; with `has_new_files`, in new files too.
  std::function<void(bool has_new_files)> see_others;
  std::function<bool(const RecordKey&)> is_there;
};

/// Lets one process fetch, or make, a record that several miss, and the others
/// wait until it is there.
///
/// A waiting process looks at the tiers every few milliseconds, and tries now
/// and then whether the claim is free: its owner may have died, or not have
/// kept the record. It waits no longer than `patience` for an owner that lives
/// and does nothing. So no process waits for ever, and no daemon is needed.
///
/// Threads:  any; `decided` runs on a thread of its own and must not block.
/// Lifetime: destruction decides what is still open.
class FetchTurns {
 public:
  struct Options {
    Nanoseconds look_every = std::chrono::milliseconds(2);
    Nanoseconds try_every = std::chrono::milliseconds(20);
    Nanoseconds patience = std::chrono::seconds(5);
  };
  FetchTurns(std::unique_ptr<RecordClaims> claims, SharedTiers tiers,
             Options options);
  ~FetchTurns();

  /// Called exactly once. True: the record is there by now. False: the caller
  /// must bring it, and then call end().
  using Decided = std::function<void(bool is_there)>;
  void ask(const RecordKey& key, std::stop_token stop, Decided decided);

  /// The record is written, or will not be: waiting processes may look, or take
  /// over. Does nothing for a key that is not ours to bring.
  void end(const RecordKey& key);

  /// Whether another process brings it now. No I/O, one call of the system.
  bool is_others(const RecordKey& key) const { return claims_->is_others(key); }

  /// Tells the others of a new file.
  void announce() { claims_->announce(); }
  /// As SharedTiers::see_others, for the announcements since the last time.
  void see_others();

  /// Keys that are ours to bring.
  std::size_t held() const;

 private:
  struct Asked {
    RecordKey key;
    std::stop_token stop;
    Decided decided;
    TimePoint since;
    TimePoint tried{};
    bool is_claimed = false;
  };
  void run(const std::stop_token& stop);
  void try_claims(std::vector<Asked>& asked);
  void decide(std::vector<Asked>& asked, bool is_ending);

  const Options options_;
  const std::unique_ptr<RecordClaims> claims_;
  const SharedTiers tiers_;

  Mutex seeing_;
  std::uint64_t seen_ LEAT_GUARDED_BY(seeing_) = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<Asked> new_ LEAT_GUARDED_BY(mutex_);
  std::unordered_set<RecordKey, RecordKeyHash> ours_ LEAT_GUARDED_BY(mutex_);
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
