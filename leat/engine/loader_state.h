// The part of a loader's state that a checkpoint keeps.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"
#include "leat/plan/order.h"

namespace leat {

/// The progress of a mix, by source.
struct MixState {
  std::vector<std::string> sources;
  std::vector<std::uint64_t> had;    ///< Samples that came before the position.
  std::uint64_t first_epoch = 0;     ///< As MixOptions says it.
  std::vector<std::uint64_t> begin;  ///< As MixSource says it.
  std::string shuffle;               ///< That of each source; empty: not said.
};

/// The maker of an order that is not a permutation.
enum class DrawnBy : std::uint8_t { kWeights, kSampler, kMix };

/// An order that is not a permutation.
struct DrawnState {
  DrawnBy by = DrawnBy::kSampler;
  /// The digest of the weights, or of the mix; for a sampler, of the running
  /// epoch's order. Empty: unknown as yet.
  std::string digest;
  /// Positions of an epoch, for weights and for a mix.
  std::uint64_t samples_per_epoch = 0;
  MixState mix = {};  ///< For a mix.
};

/// The delivered position and the inputs of the order: a few numbers, the same
/// on every rank, unless samples were skipped.
struct LoaderState {
  /// A block shuffle's states are written as 3, since its order was another one
  /// before; others as 1, or as 2 if samples were skipped.
  static constexpr int kVersion = 3;

  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  ///< Samples of it delivered, over all ranks.
  std::uint64_t seed = 0;
  std::uint64_t global_batch_size = 0;
  /// The number of samples. Nullopt, for a stream alone: unknown as yet.
  std::optional<std::uint64_t> samples;
  /// The catalogue's digest; for a stream, the digest of the objects' keys and
  /// sizes, which are known before their members.
  std::string catalogue;
  Shuffle shuffle = Shuffle::kNone;
  std::uint32_t shuffle_window = 0;
  std::optional<DrawnState> drawn = std::nullopt;  ///< For kDrawn.
  /// Positions of one rank that were overtaken by cached samples
  /// (plan/ready_first.h). Nullopt: none was overtaken, on any rank.
  std::optional<std::vector<std::uint64_t>> left_behind = std::nullopt;
  Rank rank = {};  ///< The rank that they belong to.
};

/// The word of states and order logs for a shuffle: "full".
std::string_view word_of(Shuffle shuffle);

std::string to_json(const LoaderState& state);

/// Errors: kInvalidArgument: not a state, of a newer version, or of a block
///           shuffle in the order of an older one.
Result<LoaderState> parse_state(std::string_view json);

/// Whether earlier catalogues of a loader's data are kept (Dataset::kept_as).
enum class EarlierData : std::uint8_t { kSomeIsKept, kNoneIsKept };

/// Errors: kInvalidArgument if `saved` cannot continue as `mine`: other data,
///           weights, mix, seed or shuffle, or a position past the end; for a
///           state with positions left behind, another rank or number of ranks.
///           The global batch may differ, except for such a state on several
///           ranks: the order of samples does not depend on it.
Result<void> check_compatible(const LoaderState& saved, const LoaderState& mine,
                              EarlierData earlier);

}  // namespace leat
