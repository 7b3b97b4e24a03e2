// The effect of an op on the fields of a sample.
#pragma once
#include <cstdint>

#include "leat/pipeline/ops/op.h"

namespace leat {

enum class OpKind : std::uint8_t {
  kReads,           ///< Begins a chain.
  kGeometry,        ///< Moves pixels, determined by its parameters alone.
  kRandomGeometry,  ///< Moves pixels at random.
  kColour,          ///< Changes the values of pixels.
  kNumbers,         ///< Changes the type of the numbers.
  kBatch,           ///< Decides how the pictures of a batch are joined.
  kFunction,        ///< A user's function, with any effect.
};

OpKind kind_of(const Op& op);

inline bool is_function(const Op& op) {
  return kind_of(op) == OpKind::kFunction;
}

inline bool moves_pixels(const Op& op) {
  return kind_of(op) == OpKind::kGeometry ||
         kind_of(op) == OpKind::kRandomGeometry;
}

/// Whether it changes colours, and each sample's in a way of its own. An op
/// whose parameters leave nothing to be drawn does not.
bool draws_colour(const Op& op);

/// Whether it reads rows located in a picture: boxes, keypoints.
bool reads_followers(const Op& op);

/// For an op that moves pixels: true if neither masks nor rows can follow it.
bool is_for_images_alone(const Op& op);

/// For an op that moves pixels: true if nobody can say where a point goes.
bool loses_rows(const Op& op);

/// For an op that moves pixels: true if it moves those of two pictures alike
/// only if they are of one size. Resizes and mirrors need no equal sizes.
bool needs_equal_sizes(const Op& op);

/// Adapts the op to labels: no number is blended with another, and the area
/// beyond the picture is `ignore_index`.
Op for_labels(Op op, std::uint8_t ignore_index);

}  // namespace leat
