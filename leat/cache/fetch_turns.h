// Fetches a record once for all processes that share tiers.
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
  /// Picks up what others have written; with `has_new_files`, in new files too.
  std::function<void(bool has_new_files)> see_others;
  std::function<bool(const RecordKey&)> is_there;
};

/// Lets one process fetch or make a record that several miss, while the others
/// wait until it is there.
///
/// A waiting process looks at the tiers every few milliseconds, and now and
/// then tests whether the claim is free: its owner may have died, or not have
/// kept the record. It waits at most `patience` for an owner that is alive but
/// does nothing. So no process waits for ever, and no daemon is needed.
///
/// Threads: any; `decided` runs on a thread of its own and must not block.
/// Lifetime: destruction decides all open requests.
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

  /// Called exactly once. True: the record is there now. False: the caller must
  /// bring it, and then call end().
  using Decided = std::function<void(bool is_there)>;
  void ask(const RecordKey& key, std::stop_token stop, Decided decided);

  /// The record is written, or will not be: waiting processes may look for it,
  /// or take over. Does nothing for a key that is not claimed here.
  void end(const RecordKey& key);

  /// Whether another process is bringing it now. No I/O, one system call.
  bool is_others(const RecordKey& key) const { return claims_->is_others(key); }

  /// Announces a new file to the others.
  void announce() { claims_->announce(); }
  /// Like SharedTiers::see_others, for the announcements since the last call.
  void see_others();

  /// The number of keys claimed here.
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
