#include "leat/engine/loader_stats.h"

#include <array>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

namespace leat {
namespace {}  // namespace

void EpochStats::add_to_order(std::uint64_t sample_id) {
  const std::array<std::uint64_t, 3> link = {order_hash.low, order_hash.high,
                                             sample_id};
  order_hash = xxh3_128(std::as_bytes(std::span(link)));
}

double EpochStats::wait_fraction() const {
  return elapsed.count() == 0 ? 0 : to_seconds(wait) / to_seconds(elapsed);
}

std::string to_json(const EpochStats& stats, bool has_hashes) {
  nlohmann::ordered_json json = {
      {"epoch", stats.epoch},
      {"seconds", to_seconds(stats.elapsed)},
      {"samples", stats.samples},
      {"samples_per_second",
       stats.elapsed.count() == 0
           ? 0.0
           : static_cast<double>(stats.samples) / to_seconds(stats.elapsed)},
      {"first_batch_seconds", to_seconds(stats.first_batch)},
      {"wait_seconds", to_seconds(stats.wait)},
      {"wait_fraction", stats.wait_fraction()}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(Stall::kCount); ++i) {
    const auto stall = static_cast<Stall>(i);
    json["stalls"][std::string(to_string(stall))] =
        to_seconds(stats.stalls[stall]);
  }
  json["late_batches"] = stats.late_batches;
  json["late_with_full_window"] = stats.late_with_full_window;
  json["requests"] = {
      {"get", stats.gets}, {"retried", stats.retried}, {"ahead", stats.ahead}};
  json["lookahead"] = stats.lookahead;
  json["bytes_read"] = stats.bytes_read;
  json["cache"] = {{"ram_hits", stats.ram_hits},
                   {"disk_hits", stats.disk_hits},
                   {"peer_hits", stats.peer_hits},
                   {"misses", stats.misses},
                   {"decoded_hits", stats.decoded_hits}};
  json["substituted"] = stats.substituted;
  json["skipped"] = stats.skipped;
  if (has_hashes) {
    json["order_hash"] = stats.order_hash.hex();
    json["content_hash"] = stats.content_hash.hex();
  }
  if (!stats.verdict.empty()) json["verdict"] = stats.verdict;
  return json.dump();
}

}  // namespace leat
