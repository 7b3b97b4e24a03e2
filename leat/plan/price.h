// The cost of a run: requests, traffic and hours.
#pragma once
#include <cstdint>
#include <string>

namespace leat {

struct SimulationOptions;
struct SimulationReport;

/// Counted as providers do.
inline constexpr double kBytesOfGb = 1e9;

/// A provider's prices and limits, in US dollars; some are in
/// leat/engine/prices.toml, with their dates and sources.
struct Prices {
  double get_per_1000 = 0;
  double list_per_1000 = 0;
  double put_per_1000 = 0;
  double nat_per_gb = 0;   ///< 10^9 bytes that reach the node through a NAT.
  double zone_per_gb = 0;  ///< 10^9 bytes between zones, both directions.
  double memory_per_gb_hour = 0;  ///< 10^9 bytes of a larger machine's memory.
  double disk_per_gb_month = 0;   ///< 10^9 bytes of a node's disk.
  /// The provider's limit on GETs a second for a prefix or a bucket, after
  /// which it asks for fewer. 0: none is stated.
  double gets_per_second = 0;
  std::string as_of = {};  ///< When and where, for people; empty: not said.
};

/// The costs of the place where a job runs.
struct Billing {
  double node_per_hour = 0;
  bool is_behind_nat = false;       ///< GETs pass a NAT gateway.
  bool are_peers_in_zones = false;  ///< Nodes read from other zones.
};

struct RunCost {
  double gets = 0;
  double lists = 0;
  double nat = 0;
  double peers = 0;
  double hours = 0;  ///< Dollars for the nodes, while the run lasts.
  double total() const { return gets + lists + nat + peers + hours; }
};

/// The requests and bytes of a run, however they were counted.
struct Usage {
  double gets = 0;
  double lists = 0;
  double get_bytes = 0;   ///< Those that the store sent.
  double peer_bytes = 0;  ///< Those between nodes' caches.
  double node_hours = 0;  ///< Hours, times nodes.
};

RunCost cost_of(const Usage& usage, const Prices& prices,
                const Billing& billing);

/// The cost of all epochs of `report`. A report over `only_ranks` is scaled up
/// to all ranks. The catalogue is listed once, with 1,000 keys a request.
RunCost cost_of(const SimulationReport& report,
                const SimulationOptions& options, const Prices& prices,
                const Billing& billing);

/// Compares packing samples into shards with reading each as an object.
struct PackingCost {
  std::uint64_t gets_an_epoch = 0;  ///< With reads by pieces of a shard.
  double once = 0;                  ///< A GET a sample, a PUT a shard.
  double saved_an_epoch = 0;        ///< Without a cache. At least 0.
  /// The number of epochs until it has paid off; 0 if never.
  std::uint64_t epochs_to_pay = 0;
};

/// `shard_bytes` is written by one PUT, `piece_bytes` read by one GET.
/// REQUIRES: both > 0.
PackingCost cost_of_packing(std::uint64_t samples, std::uint64_t total_bytes,
                            std::uint64_t shard_bytes,
                            std::uint64_t piece_bytes, const Prices& prices);

}  // namespace leat
