#include "leat/tune/cache_places.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "leat/base/check.h"

namespace leat {
namespace {

/// Makes amounts less, in proportion, until they fit.
void fit(std::vector<double>& amounts, double most) {
  double sum = 0;
  for (const double amount : amounts) sum += amount;
  if (sum <= most) return;
  for (double& amount : amounts) amount *= most / sum;
}

}  // namespace

void place_cache(const NodeResources& node, std::span<const CacheRoom> rooms,
                 std::span<Grant> grants) {
  LEAT_CHECK(rooms.size() == grants.size());
  const double ram_there = std::max(0.0, node.cache_bytes - node.disk_bytes);
  const std::size_t count = grants.size();
  std::vector<double> ram(count);   // The bytes that disk cannot hold.
  std::vector<double> free(count);  // The bytes that either tier can hold.
  for (std::size_t i = 0; i < count; ++i) {
    const double all = grants[i].cache_bytes;
    ram[i] =
        std::min(rooms[i].ram_bytes, std::max(0.0, all - rooms[i].disk_bytes));
    free[i] = std::max(0.0, std::min(rooms[i].ram_bytes, all) - ram[i]);
  }
  fit(ram, ram_there);
  double left = ram_there;
  for (const double amount : ram) left -= amount;
  fit(free, std::max(0.0, left));
  std::vector<double> disk(count);
  for (std::size_t i = 0; i < count; ++i) {
    ram[i] += free[i];
    disk[i] = std::min(rooms[i].disk_bytes,
                       std::max(0.0, grants[i].cache_bytes - ram[i]));
  }
  fit(disk, node.disk_bytes);
  for (std::size_t i = 0; i < count; ++i) {
    grants[i].cache_bytes = ram[i] + disk[i];
    grants[i].disk_bytes = disk[i];
  }
}

}  // namespace leat
