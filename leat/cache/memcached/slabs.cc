#include "leat/cache/memcached/slabs.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "leat/base/units.h"

namespace leat {
namespace {

/// If a smaller share of a server's memory is free elsewhere,
/// nothing is logged.
constexpr std::uint64_t kWorthTelling = 10;  // A tenth.

template <class T>
std::optional<T> number(std::string_view text) {
  T value = 0;
  const auto [end, failed] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// a + b * c, or the largest number.
std::uint64_t saturating(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t product = 0;
  std::uint64_t sum = 0;
  if (__builtin_mul_overflow(b, c, &product) ||
      __builtin_add_overflow(a, product, &sum)) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  return sum;
}

}  // namespace

std::optional<Statistic> parse_statistic(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {};
  const auto value = number<std::uint64_t>(line.substr(space + 1));
  if (!value) return {};
  return Statistic{.name = line.substr(0, space), .value = *value};
}

void SlabStatistics::add(std::string_view name_and_value) {
  const auto statistic = parse_statistic(name_and_value);
  if (!statistic) return;
  if (statistic->name == "total_malloced") slab_bytes_ = statistic->value;
  const std::size_t colon = statistic->name.find(':');
  if (colon == std::string_view::npos) return;
  const auto id = number<std::uint32_t>(statistic->name.substr(0, colon));
  if (!id || (classes_.size() >= kMostClasses && !classes_.contains(*id))) {
    return;
  }
  const std::string_view what = statistic->name.substr(colon + 1);
  if (what == "chunk_size") classes_[*id].chunk_bytes = statistic->value;
  if (what == "free_chunks") classes_[*id].free_chunks = statistic->value;
}

std::uint64_t SlabStatistics::free_elsewhere_bytes(
    std::size_t item_bytes) const {
  // An item goes to the smallest chunk that holds it.
  const Class* own = nullptr;
  for (const auto& [id, slab] : classes_) {
    if (slab.chunk_bytes < item_bytes) continue;
    if (own == nullptr || slab.chunk_bytes < own->chunk_bytes) own = &slab;
  }
  std::uint64_t bytes = 0;
  for (const auto& [id, slab] : classes_) {
    if (&slab == own) continue;
    bytes = saturating(bytes, slab.chunk_bytes, slab.free_chunks);
  }
  return bytes;
}

std::optional<std::string> SlabStatistics::complaint(
    std::string_view server, std::size_t item_bytes,
    std::uint64_t limit_bytes) const {
  const std::uint64_t elsewhere = free_elsewhere_bytes(item_bytes);
  if (elsewhere == 0 || elsewhere < limit_bytes / kWorthTelling) return {};
  return fmt::format(
      "memcached at {} refuses values of {} though {} of its {} are free: they "
      "lie in slabs of other sizes. Refused values are read from the bucket "
      "again. If other data left them, restart it, or give this job servers of "
      "its own (peers=\"auto\"); if samples differ in size, give it more "
      "memory: "
      "each size takes pages of 1 MiB",
      server, format_bytes(item_bytes), format_bytes(elsewhere),
      format_bytes(limit_bytes));
}

}  // namespace leat
