// Detects server memory that is lost to slabs of other sizes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace leat {

/// A server's memory, as `stats` and `stats slabs` report it.
///
/// memcached gives memory to a slab class page by page, and a page serves items
/// of one size. A server whose pages went to sizes that are no longer used
/// refuses new values though much memory is free: calcification.
///
/// A value type without side effects. Input is untrusted: lines that make no
/// sense are skipped, and sums saturate.
class SlabStatistics {
 public:
  /// One line of statistics: "name value".
  void add(std::string_view name_and_value);

  /// Bytes in free chunks of classes other than the one for `item_bytes`.
  std::uint64_t free_elsewhere_bytes(std::size_t item_bytes) const;
  /// Bytes given to all classes.
  std::uint64_t slab_bytes() const { return slab_bytes_; }

  /// A warning about a server that refused an item; nullopt if its memory is in
  /// use and there is simply too little of it. `limit_bytes`: the memory that
  /// the server may use.
  std::optional<std::string> complaint(std::string_view server,
                                       std::size_t item_bytes,
                                       std::uint64_t limit_bytes) const;

 private:
  struct Class {
    std::uint64_t chunk_bytes = 0;
    std::uint64_t free_chunks = 0;
  };
  static constexpr std::size_t kMostClasses = 256;

  std::map<std::uint32_t, Class> classes_;
  std::uint64_t slab_bytes_ = 0;
};

/// Parses the "name value" of a line of statistics; nullopt if it is not that.
struct Statistic {
  std::string_view name;
  std::uint64_t value = 0;
};
std::optional<Statistic> parse_statistic(std::string_view line);

}  // namespace leat
