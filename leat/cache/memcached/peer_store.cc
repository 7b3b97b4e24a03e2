#include "leat/cache/memcached/peer_store.h"

#include <utility>

#include "leat/base/check.h"
#include "leat/cache/record_key.h"

namespace leat {

/// One read from read() until its `done`.
struct PeerStore::Flight {
  RecordKey key;
  std::optional<std::size_t> placed;
  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
  TimePoint began;
};

PeerStore::PeerStore(
    std::unique_ptr<Store> inner, std::unique_ptr<PeerTier> peers,
    std::string place, Metrics* metrics,
    std::shared_ptr<const std::vector<std::uint16_t>> server_of)
    : StoreWrapper(std::move(inner)),
      place_(std::move(place)),
      metrics_(metrics),
      server_of_(std::move(server_of)),
      peers_(std::move(peers)) {}

PeerStore::~PeerStore() { LEAT_CHECK(in_flight_.load() == 0); }

RecordKey PeerStore::key_of(const ReadRequest& request) const {
  const std::string url = place_ + inner_->name_of(request.object.key);
  return record_key({.url = url,
                     .etag = request.object.etag,
                     .offset = request.offset,
                     .length_bytes = request.into.size()});
}

std::optional<std::size_t> PeerStore::place_of(const ReadHint& hint) const {
  if (server_of_ == nullptr || !hint.sample ||
      *hint.sample >= server_of_->size()) {
    return std::nullopt;
  }
  return (*server_of_)[*hint.sample];
}

void PeerStore::read(ReadRequest request, std::stop_token stop, ReadDone done) {
  // Peers keep what outlives this job, so a name has to tell the version.
  const bool has_version =
      !request.object.etag.empty() || inner_->names_version(request.object.key);
  if (!request.hint || request.into.empty() || !has_version) {
    return inner_->read(std::move(request), std::move(stop), std::move(done));
  }
  auto flight = std::make_shared<Flight>();
  flight->key = key_of(request);
  flight->placed = place_of(*request.hint);
  flight->request = std::move(request);
  flight->stop = std::move(stop);
  flight->done = std::move(done);
  flight->began = SteadyClock().now();
  in_flight_.fetch_add(1);
  peers_->find(
      flight->key, flight->request.into,
      [this, flight](bool is_hit) { heard_from_peer(flight, is_hit); },
      flight->placed);
}

void PeerStore::heard_from_peer(const FlightRef& flight, bool is_hit) {
  const ReadRequest& request = flight->request;
  if (request.observer != nullptr) {
    request.observer->peer_asked(flight->began, SteadyClock().now());
    if (is_hit) {
      request.observer->cache_had(CacheLevel::kPeer, request.into.size());
    }
  }
  count(is_hit ? Metric::kCachePeerHits : Metric::kCachePeerMisses);
  if (is_hit) return finish(flight, {});
  inner_->read(flight->request, flight->stop, [this, flight](auto result) {
    heard_from_store(flight, std::move(result));
  });
}

void PeerStore::heard_from_store(const FlightRef& flight, Result<void> result) {
  // Copies the record before `done` runs: the memory then
  // belongs to the caller.
  if (result) {
    peers_->insert(flight->key, flight->request.into, flight->placed);
  } else {
    // Ranks that wait for us to fetch it need not wait longer.
    peers_->drop(flight->key, flight->request.into.size(), flight->placed);
  }
  finish(flight, std::move(result));
}

void PeerStore::finish(const FlightRef& flight, Result<void> result) {
  const ReadDone done = std::move(flight->done);
  in_flight_.fetch_sub(1);
  done(std::move(result));  // It may destroy us.
}

}  // namespace leat
