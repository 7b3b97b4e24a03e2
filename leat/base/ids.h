// Numbers that must not be mixed up, as types.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace leat {

/// The number of a sample in its catalogue: samples are numbered from 0 in byte
/// order of their keys.
struct SampleId {
  std::uint64_t value = 0;
  friend auto operator<=>(SampleId, SampleId) = default;
};

/// The number of an object in its catalogue.
struct ObjectIndex {
  std::uint32_t value = 0;
  friend auto operator<=>(ObjectIndex, ObjectIndex) = default;
};

/// Which of how many: the rank of this process among all that train together.
struct Rank {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  friend auto operator<=>(Rank, Rank) = default;
};

}  // namespace leat

template <>
struct std::hash<leat::SampleId> {
  std::size_t operator()(leat::SampleId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
