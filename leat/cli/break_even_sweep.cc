#include "leat/cli/break_even_sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "leat/cli/break_even_report.h"

namespace leat {
namespace {

/// All of the data is on a disk of each node, and is read from there in all
/// epochs. An epoch over the bucket tells how many GETs fetch `total_bytes`.
Way copy_way(const Way& bucket, double total_bytes,
             const SweepOptions& options) {
  const WayPart& epoch = bucket.epochs.front();
  const double gets = epoch.get_bytes > 0
                          ? epoch.gets * total_bytes / epoch.get_bytes
                          : epoch.gets;
  const TimeOptions& times = options.times;
  double seconds = gets * times.get_seconds / times.max_in_flight;
  if (times.bytes_per_second > 0) {
    seconds = std::max(seconds, total_bytes / times.bytes_per_second);
  }
  Way way{.name = "copy on disk",
          .copy = {.seconds = seconds,
                   .wait_seconds = seconds,
                   .gets = gets * options.nodes,
                   .get_bytes = total_bytes * options.nodes},
          .lists = bucket.lists,
          .disk_bytes = total_bytes * options.nodes};
  for (const WayPart& part : bucket.epochs) {
    way.epochs.push_back({.seconds = part.seconds - part.wait_seconds});
  }
  return way;
}

}  // namespace

Result<nlohmann::ordered_json> break_even_of(const SweepOptions& options,
                                             double total_bytes,
                                             const Prices& prices,
                                             const Billing& billing,
                                             const std::string& url,
                                             const std::stop_token& stop) {
  struct Rented {
    const char* name;
    std::uint64_t ram;
    std::uint64_t disk;
  };
  std::vector<Rented> rented{{"bucket", 0, 0}};
  const auto [ram, disk] = std::pair(options.ram_bytes, options.disk_bytes);
  if (ram > 0) rented.push_back({"cache in memory", ram, 0});
  if (disk > 0) rented.push_back({"cache on disk", 0, disk});
  if (ram > 0 && disk > 0) rented.push_back({"cache in both", ram, disk});
  std::vector<Way> ways;
  for (const Rented& rent : rented) {
    SweepOptions one = options;
    one.ram_bytes = rent.ram;
    one.disk_bytes = rent.disk;
    one.only = {ways.empty() ? "no cache" : "belady"};
    LEAT_TRY(const auto rows, sweep(one, stop));
    Way way{.name = rent.name,
            .memory_bytes = static_cast<double>(rent.ram) * options.nodes,
            .disk_bytes = static_cast<double>(rent.disk) * options.nodes};
    take_from(rows.front().report, rows.front().options, way);
    ways.push_back(std::move(way));
  }
  ways.push_back(copy_way(ways.front(), total_bytes, options));
  return break_even_json(url, ways, options.epochs, options.nodes, prices,
                         billing);
}

}  // namespace leat
