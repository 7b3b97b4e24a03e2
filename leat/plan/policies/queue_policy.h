// FIFO and LRU: a queue of the samples held, whose front is dropped.
#pragma once
#include <memory>

#include "leat/plan/cache_policy.h"

namespace leat {

/// The effect of a use on a sample's place in the queue.
enum class OnUse : std::uint8_t {
  kStay,    ///< Nothing: first in, first out.
  kRejoin,  ///< It goes to the back: least recently used.
};

std::unique_ptr<CachePolicy> make_queue_policy(const CachePolicySpec& spec,
                                               OnUse on_use);

}  // namespace leat
