// The filter is stretched by the factor of reduction, never squeezed, and cut
// off at the edges of the source; the rest is scaled to sum to 1.

#include "leat/pipeline/ops/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace leat {
namespace {

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

struct Box {
  static constexpr double kSupport = 0.5;
  static double at(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};

struct Bilinear {
  static constexpr double kSupport = 1.0;
  static double at(double x) { return std::max(0.0, 1.0 - std::abs(x)); }
};

struct Hamming {
  static constexpr double kSupport = 1.0;
  static double at(double x) {
    x = std::abs(x);
    if (x >= 1.0) return 0.0;
    // Pillow's constants are floats.
    return sinc(x) * (0.54F + 0.46F * std::cos(std::numbers::pi * x));
  }
};

/// Keys' cubic with a = -1/2.
struct Bicubic {
  static constexpr double kSupport = 2.0;
  static double at(double x) {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
    if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
    return 0.0;
  }
};

struct Lanczos {
  static constexpr double kSupport = 3.0;
  static double at(double x) {
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
  }
};

std::int32_t fixed_weight(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// The run of source pixels under one target, and their weights.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

template <class Filter>
Run run_under(const AxisRequest& request, std::uint32_t target,
              std::vector<double>& weights) {
  const double scale = request.length / request.target_size;
  const double stretch = std::max(scale, 1.0);
  const double support = Filter::kSupport * stretch;
  const double centre = request.from + (target + 0.5) * scale;
  const auto source_size = static_cast<double>(request.source_size);
  const auto first =
      static_cast<std::uint32_t>(std::max(centre - support + 0.5, 0.0));
  const auto end =
      static_cast<std::uint32_t>(std::min(centre + support + 0.5, source_size));

  const double squeeze = 1.0 / stretch;
  const std::uint32_t count = std::max(end, first + 1) - first;
  weights.resize(count);
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    weights[i] = Filter::at((i + first - centre + 0.5) * squeeze);
    sum += weights[i];
  }
  for (double& weight : weights) {
    if (sum != 0) weight /= sum;
  }
  return {first, count};
}

using RunFunction = Run (*)(const AxisRequest&, std::uint32_t,
                            std::vector<double>&);

RunFunction function_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:  // Has no filter: see assign_nearest.
    case Interpolation::kBox:
      return run_under<Box>;
    case Interpolation::kBilinear:
      return run_under<Bilinear>;
    case Interpolation::kHamming:
      return run_under<Hamming>;
    case Interpolation::kBicubic:
      return run_under<Bicubic>;
    case Interpolation::kLanczos:
      break;
  }
  return run_under<Lanczos>;
}

}  // namespace

void AxisWeights::assign(const AxisRequest& request) {
  if (made_for_ == request) return;
  made_for_.reset();  // Until they are whole: the system may refuse memory.
  targets_.clear();
  quads_.clear();
  if (request.interpolation == Interpolation::kNearest) {
    assign_nearest(request);
  } else {
    const RunFunction run_of = function_of(request.interpolation);
    for (std::uint32_t i = 0; i < request.window_count; ++i) {
      const Run run = run_of(request, request.window_first + i, exact_);
      add(run.first, exact_.data(), run.count);
    }
  }
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t end = 0;
  for (const Target& target : targets_) {
    first = std::min(first, target.first);
    end = std::max(end, target.first + target.count);
  }
  first_ = first;
  count_ = end - first;
  for (Target& target : targets_) target.first -= first;
  made_for_ = request;
}

void AxisWeights::assign_kernel(std::span<const double> weights) {
  made_for_.reset();
  targets_.clear();
  quads_.clear();
  first_ = 0;
  count_ = static_cast<std::uint32_t>(weights.size());
  add(0, weights.data(), count_);
}

void AxisWeights::assign_nearest(const AxisRequest& request) {
  const double step = request.length / request.target_size;
  // Summed up, not multiplied: as Pillow decides where two are equally near.
  double at = request.from + step * 0.5;
  const std::uint32_t end = request.window_first + request.window_count;
  for (std::uint32_t i = 0; i < end; ++i, at += step) {
    if (i < request.window_first) continue;
    const double whole = 1.0;
    add(std::min(static_cast<std::uint32_t>(at), request.source_size - 1),
        &whole, 1);
  }
}

void AxisWeights::add(std::uint32_t first, const double* weights,
                      std::uint32_t count) {
  targets_.push_back({first, count, quads_.size()});
  quads_.resize(quads_.size() + (count + kTapsPerQuad - 1) / kTapsPerQuad);
  WeightQuad* quads = quads_.data() + targets_.back().quads;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int32_t fixed = fixed_weight(weights[i]);
    WeightQuad& quad = quads[i / kTapsPerQuad];
    // The high half rounds down, so the low half is never negative.
    quad.high[i % kTapsPerQuad] = static_cast<std::int16_t>(fixed >> kLowBits);
    quad.low[i % kTapsPerQuad] =
        static_cast<std::int16_t>(fixed & ((1 << kLowBits) - 1));
  }
}

}  // namespace leat
