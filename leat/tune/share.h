// The part of its node's resources that one loader may use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat {

/// Upper bounds for one rank of a job; a nullopt leaves the user's own bound.
struct Share {
  std::optional<std::size_t> threads;             ///< That decode; at least 1.
  std::optional<std::size_t> in_flight;           ///< Requests; at least 1.
  std::optional<std::uint64_t> bytes_per_second;  ///< From the store.
  std::optional<std::uint64_t> ram_bytes;         ///< The cache's memory.
  std::optional<std::uint64_t> disk_bytes;        ///< The cache's disk.

  bool operator==(const Share&) const = default;
};

}  // namespace leat
