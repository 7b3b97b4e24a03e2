// A store with peers in front of it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/cache/memcached/peer_tier.h"
#include "leat/metrics/metrics.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Answers a read that has a hint from the job's peers, otherwise from the
/// inner store, and then inserts the bytes for them.
///
/// Each range is read from the inner store by the first rank that needs it; the
/// others find it. No failure of a peer is ever a failure of a read. A slow
/// peer costs `patience` once, and then only the time of the inner store.
///
/// Threads: any; `done` runs on a thread of the inner store or of the peers.
/// Lifetime: see Store. `metrics` may be null, or else outlives the store.
class PeerStore final : public StoreWrapper {
 public:
  /// `place` prefixes url_of() in the name of each record, to tell endpoints
  /// apart. Never holds credentials. `server_of`, if given, maps a sample that
  /// a hint names to an index into PeerOptions::servers: the same for all
  /// ranks. Otherwise the key selects the server.
  PeerStore(
      std::unique_ptr<Store> inner, std::unique_ptr<PeerTier> peers,
      std::string place, Metrics* metrics,
      std::shared_ptr<const std::vector<std::uint16_t>> server_of = nullptr);
  ~PeerStore() override;

  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;

  PeerTier& peers() { return *peers_; }

 private:
  struct Flight;
  using FlightRef = std::shared_ptr<Flight>;

  RecordKey key_of(const ReadRequest& request) const;
  std::optional<std::size_t> place_of(const ReadHint& hint) const;
  void heard_from_peer(const FlightRef& flight, bool is_hit);
  void heard_from_store(const FlightRef& flight, Result<void> result);
  void finish(const FlightRef& flight, Result<void> result);
  void count(Metric metric) {
    if (metrics_ != nullptr) metrics_->add(metric, 1);
  }

  const std::string place_;
  Metrics* const metrics_;
  const std::shared_ptr<const std::vector<std::uint16_t>> server_of_;
  std::atomic<std::uint64_t> in_flight_ = 0;
  std::unique_ptr<PeerTier> peers_;  // Last: its threads call us.
};

}  // namespace leat
