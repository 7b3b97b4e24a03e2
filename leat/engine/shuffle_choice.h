// The kind of shuffle, as users choose it.
#pragma once
#include <cstdint>

namespace leat {

enum class ShuffleChoice : std::uint8_t {
  kNone,   ///< In the order of the keys.
  kAuto,   ///< Full over objects, block over shards.
  kFull,   ///< Each order of all samples is as likely.
  kBlock,  ///< Mixes a few pieces of shards at a time: large reads.
  kStream  ///< The same over shards that need no index.
};

}  // namespace leat
