// The shuffles that users choose from.
#pragma once
#include <cstdint>

namespace leat {

enum class ShuffleChoice : std::uint8_t {
  kNone,   ///< In the order of the keys.
  kAuto,   ///< Full over objects, block over shards.
  kFull,   ///< Every order of all samples is equally likely.
  kBlock,  ///< Mixes a few pieces of shards at a time: large reads.
  kStream  ///< As kBlock, over shards that need no index.
};

}  // namespace leat
