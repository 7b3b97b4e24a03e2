// Random draws that are functions of their purpose, and of nothing else.
//
//     key      = mix64(mix64(mix64(mix64(mix64(seed) ^ epoch) ^ sample)
//                      ^ op) ^ xxh3_64(field))
//     draw i   = mix64(key + i * 0x9e3779b97f4a7c15)          i = 0, 1, …
//     uniform  = (draw >> 11) / 2^53                          in [0, 1)
//
// `op` is the position of the op in the user's list, counted from 0, and
// `field` the name that the field has behind the op that decodes it. mix64 is a
// bijection, so two samples of one epoch, or two epochs of one seed, never
// share a key. This is part of the meaning of a seed: changing it changes every
// run.
#pragma once
#include <cstdint>

#include "leat/base/hash.h"
#include "leat/pipeline/program/program.h"

namespace leat {

/// The stream of draws of one op for one sample.
class Draws {
 public:
  Draws(const SampleRandom& random, std::uint64_t op, std::uint64_t field_hash)
      : key_(mix64(mix64(mix64(mix64(mix64(random.seed) ^ random.epoch) ^
                               random.sample.value) ^
                         op) ^
                   field_hash)) {}

  /// Uniform in [0, 1).
  double uniform() {
    const std::uint64_t bits = mix64(key_ + next_++ * 0x9e3779b97f4a7c15ULL);
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

  /// Uniform in [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * uniform();
  }

  /// All 64 bits of a draw: the seed of a stream of its own.
  std::uint64_t bits() { return mix64(key_ + next_++ * 0x9e3779b97f4a7c15ULL); }

  /// A draw from the gamma distribution of this shape (above 0), scale 1: by
  /// Marsaglia and Tsang, who take as many draws as they need.
  double gamma(double shape);

  /// Uniform among 0 … count - 1.
  std::uint32_t below(std::uint32_t count) {
    return static_cast<std::uint32_t>(uniform() * count);
  }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 0;
};

}  // namespace leat
