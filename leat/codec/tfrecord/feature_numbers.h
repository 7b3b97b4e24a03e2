// The numbers of a tf.train.Feature.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// The values of an int64_list or of a float_list.
using FeatureNumbers =
    std::variant<std::vector<std::int64_t>, std::vector<float>>;

/// Reads a whole message tf.train.Feature, whose numbers may be packed or not.
/// Takes up to eight times its bytes of memory.
///
/// Errors:
///   kCorrupt  no such message, cut short, or one with a bytes_list or no list
Result<FeatureNumbers> read_feature_numbers(std::span<const std::byte> feature);

}  // namespace leat
