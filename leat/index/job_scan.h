// Lets the ranks of a job index shards together, each shards of its own.
//
// Under the name of one opening of a place the ranks write:
//
//     who          the rank that lists, and a number that no other process has
//     listing      the letter L and the listing, or N: no unindexed shards
//     shard/S      the letter S, the listing's hash and the members of shard S;
//                  F, the hash and why it cannot be scanned; or T: they are too
//                  many to pass on
//     beat/R       a number that rises while rank R lives
//     left/R       rank R scans no more, or knows all shards
//     awaited/R    the last shard of rank R that somebody's training waits for
//
// The listing and the shards are removed once all ranks have left. Openings are
// only counted: a rank that opens a place once more than others meets what is
// left of an earlier one, and then lists for itself.
//
// scan_entries.h has the bytes of listings, members and failures.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/base/ids.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/index/companions.h"
#include "leat/index/scan_log.h"

namespace leat {

/// The place where the processes of a job write texts under names.
///
/// Threads: any.
class ScanBoard {
 public:
  virtual ~ScanBoard() = default;

  /// This process, among those that share the board.
  virtual Rank rank() const = 0;
  /// Begins to open a place, and gives this opening's name: the n-th opening of
  /// a place has one name in all processes. From now on `beat/R` rises.
  virtual std::string begin(std::string_view place) = 0;
  /// It rises no more. The last rank to call this removes the listing and
  /// that many shards.
  virtual void end(const std::string& opening, std::size_t shards) = 0;
  /// Writes a text, unless there is one. Errors: any; the board is lost
  virtual Result<bool> claim(const std::string& name,
                             std::string_view text) = 0;
  /// Writes bytes; false if they are too many. Errors: as claim()
  virtual Result<bool> put(const std::string& name, std::string_view bytes) = 0;
  /// The bytes of put(); nullopt while there are none. Does not wait.
  /// Errors: as claim(); kCorrupt
  virtual Result<std::optional<std::string>> get(const std::string& name) = 0;
  /// The same of claim() and of beats.
  virtual Result<std::optional<std::string>> text(const std::string& name) = 0;
};

/// How long one rank waits for another.
struct JobScanTimes {
  /// For a rank that gives no sign.
  Nanoseconds to_die = std::chrono::seconds(30);
  /// For one that has given none at all: it may have no loader.
  Nanoseconds to_come = std::chrono::seconds(10);
  /// Between two words that this rank's training waits: another rank's word may
  /// take the place of one.
  Nanoseconds ask = std::chrono::seconds(1);
  /// Between two looks at whether it lives.
  Nanoseconds look = std::chrono::milliseconds(200);
  /// The time between two looks at its findings: the first one,
  /// and the longest.
  Nanoseconds first_pause = std::chrono::milliseconds(2);
  Nanoseconds longest_pause = std::chrono::milliseconds(40);
};

/// One opening of shards by this rank, among all ranks of its job. Rank r of W
/// scans every W-th shard from shard r on. If a rank dies, leaves or cannot
/// be reached, each of the others scans its shards for itself: no rank waits
/// for one that is gone, and what is found is the same whoever finds it.
///
/// A rank leaves once and for good: when it closes, when its scan ends, well or
/// not, and at the first error of the board.
///
/// Threads: any, but take_listing() and look_at() one at a time, and so the
///          functions that tell.
class JobScan {
 public:
  JobScan(std::shared_ptr<ScanBoard> board, std::string_view place,
          JobScanTimes times = {});
  /// Leaves.
  ~JobScan();
  JobScan(const JobScan&) = delete;
  JobScan& operator=(const JobScan&) = delete;

  struct Listed {
    enum class Who : std::uint8_t {
      kThis,   ///< This rank lists: tell_listing() comes next.
      kOther,  ///< Another one has; `objects` are the shards.
      kNobody  ///< Nobody has for all, or there are no unindexed shards.
    };
    Who who = Who::kNobody;
    SortedObjects objects;
  };
  /// Blocks while another rank lists. Errors: kCancelled
  Result<Listed> take_listing(const std::stop_token& stop);
  /// The shards that this rank has listed; null: there is nothing to scan.
  /// False if the others do not get them, as if there were nothing.
  bool tell_listing(const SortedObjects* objects);

  Rank rank() const { return rank_; }
  bool is_ours(std::size_t shard) const {
    return shard % rank_.world_size == rank_.rank;
  }

  /// This rank scans that shard now. REQUIRES: is_ours(shard).
  void begin_shard(std::size_t shard) { shard_ = shard; }
  /// Tells the others what was found in it. REQUIRES: is_ours(shard).
  void tell(std::size_t shard, const ScannedShard& scanned);
  void tell(std::size_t shard, const Error& error);

  enum class Sight : std::uint8_t {
    kThere,   ///< In `entry`: a shard, or why it cannot be scanned.
    kComing,  ///< Not yet.
    kLeft     ///< It will not come: this rank scans it for itself.
  };
  /// Looks for what another rank found. Returns at once. REQUIRES:
  /// !is_ours(shard).
  Sight look_at(std::size_t shard, ScanEntry& entry);
  /// Tells the others that this rank scans no more, or knows all shards, and
  /// beats no more. It neither tells nor looks after this: look_at() is kLeft.
  /// Twice does no harm.
  void leave();
  /// How long to wait between two looks, of which this is the n-th in vain.
  Nanoseconds pause(std::size_t looks) const;

  /// Whether this rank's training waits for what is not known yet.
  void say_waiting(bool is_waiting) { is_waiting_ = is_waiting; }
  /// Tells the rank of a shard that training waits for it, if it does.
  void ask_for(std::size_t shard);
  /// Whether another rank's training waits for the shard that is scanned here.
  bool is_awaited();

 private:
  /// Everything known of another rank.
  struct Other {
    std::string beat;
    TimePoint beat_at;                  ///< When it changed last.
    TimePoint looked_at;                ///< At its beat.
    std::optional<TimePoint> asked_at;  ///< For a shard that is awaited.
    bool is_gone = false;
  };

  std::string name(std::string_view kind, std::uint64_t number) const;
  bool is_gone(std::uint32_t rank);
  Result<bool> has_left(std::uint32_t rank);
  void take_hash(std::string_view listing, std::size_t shards);
  void tell_entry(std::size_t shard, char letter, std::string_view bytes);
  void lose(const Error& error);

  const std::shared_ptr<ScanBoard> board_;
  const JobScanTimes times_;
  const Rank rank_;
  const SteadyClock clock_ = {};
  const TimePoint opened_at_;
  const std::string opening_;
  std::string listing_;  ///< Its hash.
  std::size_t shards_ = 0;
  std::atomic<bool> has_left_ = false;
  std::atomic<bool> is_waiting_ = false;
  std::atomic<std::size_t> shard_ = 0;
  std::map<std::uint32_t, Other> others_;
  bool is_too_much_ = false;  ///< To tell; the user knows.
};

}  // namespace leat
