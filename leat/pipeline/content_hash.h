// A hash of the delivered samples, independent of their order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "leat/base/hash.h"
#include "leat/base/ids.h"

namespace leat {

/// The hash of one delivered sample: XXH3-128 over, in this order, the epoch
/// and the sample's id (8 bytes each, little-endian) and, for every
/// delivered field but `index`, `key` and `valid`, its name, a zero byte,
/// and its bytes as they are in the batch (numbers as 8 bytes). If samples
/// of a field have their own shapes, delivered as they are or padded to one
/// size, the hash covers the sample's own bytes, without padding, followed
/// by each dimension of its shape as 8 bytes; the field of its size
/// (`image_size`) is left out.
///
/// The content hash of an epoch is the sum of these modulo 2^128: independent
/// of order, threads and batches, and additive over ranks and over the two
/// halves of a resumed epoch.
class ContentHasher {
 public:
  ContentHasher(std::uint64_t epoch, SampleId sample) {
    hasher_.update(epoch);
    hasher_.update(sample.value);
  }
  void field(std::string_view name, std::span<const std::byte> bytes) {
    constexpr std::byte kEnd{0};
    hasher_.update(
        {reinterpret_cast<const std::byte*>(name.data()), name.size()});
    hasher_.update({&kEnd, 1});
    hasher_.update(bytes);
  }
  /// For the field that was added last.
  void shape(std::span<const std::int64_t> dimensions) {
    for (const std::int64_t n : dimensions) {
      hasher_.update(static_cast<std::uint64_t>(n));
    }
  }
  Hash128 digest() const { return hasher_.digest(); }

 private:
  Hasher128 hasher_;
};

}  // namespace leat
