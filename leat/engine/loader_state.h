// What a checkpoint keeps of a loader.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/plan/order.h"

namespace leat {

/// The delivered position and what the order is a function of: a few numbers,
/// the same on every rank.
struct LoaderState {
  static constexpr int kVersion = 1;

  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  ///< Samples delivered of it, over all ranks.
  std::uint64_t seed = 0;
  std::uint64_t global_batch_size = 0;
  /// Of the dataset. Nullopt, of a stream alone: not known yet.
  std::optional<std::uint64_t> samples;
  /// The catalogue's digest; of a stream that of the objects' keys and sizes,
  /// which are known before their members are.
  std::string catalogue;
  Shuffle shuffle = Shuffle::kNone;
  std::uint32_t shuffle_window = 0;
};

std::string to_json(const LoaderState& state);

/// Errors: kInvalidArgument: not a state, or of a newer version.
Result<LoaderState> parse_state(std::string_view json);

/// Errors: kInvalidArgument if `saved` cannot go on where `mine` is set up:
/// other data, seed or shuffle, or a position past the end. The global batch
/// may differ: the order of samples does not depend on it.
Result<void> check_compatible(const LoaderState& saved,
                              const LoaderState& mine);

}  // namespace leat
