// The weights of an antialiased resize, along one axis.
//
// An output pixel is a weighted mean of a run of source pixels. Weights are
// fixed-point numbers of 22 bits behind the point, computed as Pillow does, so
// that its pixels come out. 22 bits do not fit the 16-bit multiplier of SIMD:
// each weight is kept as two halves, high * 2^11 + low.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace leat {

/// Pillow's filters.
enum class Interpolation : std::uint8_t {
  kNearest,
  kBox,
  kBilinear,
  kHamming,
  kBicubic,
  kLanczos,
};

inline constexpr int kWeightBits = 22;
inline constexpr int kLowBits = 11;
inline constexpr std::size_t kTapsPerQuad = 4;

/// Four consecutive weights, each split into two halves.
struct WeightQuad {
  std::int16_t high[kTapsPerQuad] = {};
  std::int16_t low[kTapsPerQuad] = {};
};

/// Joins the halves of one weight.
inline std::int32_t weight_at(const WeightQuad* quads, std::uint32_t tap) {
  const WeightQuad& quad = quads[tap / kTapsPerQuad];
  return quad.high[tap % kTapsPerQuad] * (1 << kLowBits) +
         quad.low[tap % kTapsPerQuad];
}

/// The sizes that one axis is mapped from and to.
struct AxisRequest {
  std::uint32_t source_size =
      0;              ///< Pixels that may be read: [0, source_size).
  double from = 0;    ///< The part of them that is resized begins
  double length = 0;  ///< here and is this long.
  std::uint32_t target_size = 0;   ///< It becomes this many pixels,
  std::uint32_t window_first = 0;  ///< the first of these that is wanted.
  std::uint32_t window_count = 0;
  Interpolation interpolation = Interpolation::kBilinear;
  friend bool operator==(const AxisRequest&, const AxisRequest&) = default;
};

/// The weights of the wanted pixels. Reused for the next axis to spare memory;
/// pictures that follow each other in one size have the same.
///
/// Threads: one at a time.
class AxisWeights {
 public:
  struct Target {
    std::uint32_t first = 0;  ///< The first source pixel, counted from first().
    std::uint32_t count = 0;  ///< How many, at least 1.
    std::size_t quads = 0;    ///< The start of its weights in `quads`.
  };

  /// REQUIRES: nothing in `request` is empty; the window lies in the target.
  void assign(const AxisRequest& request);

  /// One target with these weights, whose sum is 1.
  void assign_kernel(std::span<const double> weights);

  /// The source pixels that any target reads: [first, first + count).
  std::uint32_t first() const { return first_; }
  std::uint32_t count() const { return count_; }

  const std::vector<Target>& targets() const { return targets_; }
  const WeightQuad* quads(const Target& target) const {
    return quads_.data() + target.quads;
  }

 private:
  void assign_nearest(const AxisRequest& request);
  void add(std::uint32_t first, const double* weights, std::uint32_t count);

  std::optional<AxisRequest> made_for_;
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
  std::vector<Target> targets_;
  std::vector<WeightQuad> quads_;
  std::vector<double> exact_;  // The weights of one target.
};

}  // namespace leat
