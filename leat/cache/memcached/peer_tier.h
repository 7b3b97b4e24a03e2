// The memory of a job's nodes as one cache: memcached servers.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/cache/memcached/connection.h"
#include "leat/cache/memcached/peer_thread.h"
#include "leat/cache/memcached/rendezvous.h"
#include "leat/cache/record_key.h"
#include "leat/store/http/resolver.h"

namespace leat {

struct PeerOptions {
  /// "host:port"; the same for all ranks, in any order.
  std::vector<std::string> servers;
  PeerSettings settings;
  /// The bytes of everything that the job will read. The part beyond the
  /// servers' memory is kept out by its keys, the same ones on all ranks. 0:
  /// unknown, and everything is offered.
  std::uint64_t dataset_bytes = 0;
  /// Threads that talk to servers, each to some of them.
  std::size_t threads = 1;
  /// Bytes of values on their way to servers; further values are not kept.
  std::uint64_t most_unsent_bytes = 64 << 20;
  /// How long a find waits for a value that another rank was told to bring.
  Nanoseconds most_wait = std::chrono::seconds(2);
};

/// A tier's operations, counted in values, not pieces.
struct PeerCounts {
  std::uint64_t hits = 0;
  std::uint64_t hit_bytes = 0;
  std::uint64_t misses = 0;       ///< Not there: the caller fetches it.
  std::uint64_t waited = 0;       ///< Hits and misses that waited for others.
  std::uint64_t wrong = 0;        ///< There, but torn, or not sealed by us.
  std::uint64_t unreachable = 0;  ///< The server is down, or went down.
  std::uint64_t not_kept = 0;     ///< Finds of values that have no room.
  std::uint64_t inserts = 0;
  std::uint64_t refused = 0;  ///< Inserts that a full server refused.
  std::uint64_t unsent = 0;   ///< Inserts dropped: server down, or too many.
  std::uint64_t outages = 0;  ///< The number of times a server went down.
};

/// Records in the memory of memcached servers, by their key.
///
/// Each record has one server, which its key selects (rendezvous.h); there is
/// no directory. The tier only stores: it never fetches, and servers never
/// evict (memcached -M). If the dataset is larger than the servers' memory,
/// keys decide the share that fits, and the rest is neither asked for nor sent.
/// A miss is always a correct answer; wrong bytes are never returned (piece.h).
/// The first wrong value is logged.
///
/// If several ranks miss a record at once, one is told of a miss, fetches and
/// inserts it. The others' finds wait for that, at most `most_wait`.
///
/// Threads: any; answers come on the tier's own. Lifetime: destruction answers
/// everything outstanding as a miss, and joins.
class PeerTier {
 public:
  /// Starts to connect without waiting. An absent server is one that may come
  /// later.
  ///
  /// Errors:
  ///   kInvalidArgument    no servers, or one that is no "host:port"
  ///   kResourceExhausted  the process may open no more files
  static Result<std::unique_ptr<PeerTier>> open(const PeerOptions& options);
  ~PeerTier();
  PeerTier(const PeerTier&) = delete;
  PeerTier& operator=(const PeerTier&) = delete;

  /// Calls `done` with true once `into` holds the record, or with false, which
  /// leaves `into` undefined. Returns immediately. `done` runs once, perhaps
  /// before find() returns, and must not block; until then `into` belongs to
  /// the tier. For a record that a plan has placed, `placed` replaces the
  /// server that the key selects. It is an index into PeerOptions::servers, the
  /// same on all ranks.
  void find(const RecordKey& key, std::span<std::byte> into,
            std::function<void(bool is_hit)> done,
            std::optional<std::size_t> placed = std::nullopt);

  /// Sends a copy of the record to its server, if there is room for the copy.
  /// Returns immediately.
  void insert(const RecordKey& key, std::span<const std::byte> record,
              std::optional<std::size_t> placed = std::nullopt);

  /// Makes the server forget a record of this size. Returns immediately.
  void drop(const RecordKey& key, std::uint64_t record_bytes,
            std::optional<std::size_t> placed = std::nullopt);

  /// Waits until each server is up or has failed once, at most `timeout`; true
  /// if all are up.
  bool wait_for_servers(Nanoseconds timeout);

  /// The joint capacity of the servers that have been up.
  std::uint64_t capacity_bytes() const;
  PeerCounts counts() const;

 private:
  struct Server {
    PeerThread* thread = nullptr;
    std::size_t index = 0;  // The thread's number.
    std::atomic<std::uint64_t> limit_bytes = 0;
    std::atomic<bool> is_up = false;
    std::atomic<bool> is_known = false;  // It has been up or has failed.
  };
  struct Counters {
    std::atomic<std::uint64_t> hits, hit_bytes, misses, waited, wrong,
        unreachable, not_kept, inserts, refused, unsent, outages;
  };

  PeerTier(const PeerOptions& options, const std::vector<ServerName>& servers,
           const std::vector<std::string>& names,
           std::vector<std::size_t> as_given);

  std::size_t server_of(const RecordKey& key,
                        std::optional<std::size_t> server) const;

  void start_threads(const std::vector<ServerName>& servers);
  bool has_room_for(const RecordKey& key, const Server& server) const;
  void found(const PeerOperationRef& operation, std::size_t server,
             TimePoint wait_until,
             const std::function<void(bool is_hit)>& done);
  void inserted(const PeerOperation& operation);
  void tell(std::size_t server, bool is_up);

  const PeerOptions options_;
  const Rendezvous rendezvous_;
  const std::vector<std::size_t>
      as_given_;  // The servers, as the options name them.
  const SteadyClock clock_;
  std::vector<std::unique_ptr<Server>> servers_;
  Counters counts_{};
  std::atomic<std::uint64_t> unsent_bytes_ = 0;

  Mutex mutex_;
  CondVar changed_;

  Resolver resolver_;
  std::vector<std::unique_ptr<PeerThread>> threads_;  // Last: they call us.
};

}  // namespace leat
