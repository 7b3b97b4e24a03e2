// The order of a stream that is mixed of several sources.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/ids.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"
#include "leat/plan/drawn_order.h"
#include "leat/plan/interleave.h"
#include "leat/plan/order.h"
#include "leat/plan/staged_turns.h"

namespace leat {

/// The end of an epoch of a mixed stream, in the words of Hugging Face's
/// `interleave_datasets`.
enum class MixStop : std::uint8_t {
  kFirstExhausted,  ///< As soon as one source has come once.
  kAllExhausted,    ///< As soon as every source has come once, or more often.
  /// When every source has come once: those that are left share the turns of
  /// those that are through.
  kAllExhaustedWithoutReplacement,
};

/// A source of a mixed stream: a run of the dataset's samples.
struct MixSource {
  std::string name;
  std::uint64_t samples = 0;
  double weight = 0;  ///< A source of weight 0 never comes.
  /// Samples of an epoch, for kAllExhaustedWithoutReplacement; 0: all, once.
  /// More than there are begin it anew.
  std::uint64_t wanted = 0;
  /// Samples that had come before the stream began.
  std::uint64_t begin = 0;
};

/// Weights that hold from a sample of the stream on.
struct MixStage {
  std::uint64_t first = 0;      ///< Samples of the stream before it.
  std::vector<double> weights;  ///< By source.
};

struct MixOptions {
  std::vector<MixSource> sources;  ///< In the order of the dataset.
  /// Changes the weights, in this order; counted from where the stream began.
  std::vector<MixStage> schedule = {};
  /// Weights move evenly from each point of the schedule to the next, in
  /// kRampStages stages, and do not jump.
  bool is_ramp = false;
  MixStop stop = MixStop::kAllExhausted;
  Composition composition = Composition::kRandom;
  /// Positions of an epoch; 0: as `stop` says.
  std::uint64_t samples_per_epoch = 0;
  /// The epoch that the stream began with.
  std::uint64_t first_epoch = 0;
  /// The positions of a turn, for kPerSource.
  std::uint64_t global_batch = 1;
};

/// Sources whose turns are interleaved by weight, each in an order of its own.
///
/// A source is a stream of laps: each lap has all its samples, in an order that
/// follows from the seed, the source's name and the number of the lap. A source
/// goes on where it stopped, in the next epoch too, so no sample comes again
/// before all of its source have come. Position, source and place in it follow
/// from one another in closed form: see Interleave. Weights, and the sources
/// beside it, do not change a source's own order, so a stream can go on with
/// others from where each source stopped: `MixSource::begin`.
///
/// The pieces of sources that are shuffled in blocks can be read whole, and by
/// any number of ranks: see has_lanes() of DrawnEpoch.
///
/// Threads: any.
class MixedOrder final : public DrawnOrder,
                         public std::enable_shared_from_this<MixedOrder> {
 public:
  /// Stages from one point of a schedule to the next.
  static constexpr std::uint64_t kRampStages = 64;
  static constexpr std::size_t kMostPoints = 256;
  /// Each epoch begins where the one before it ends, so they are counted up.
  static constexpr std::uint64_t kMostEpochs = 1 << 20;

  /// `order` says how a source is shuffled: kNone, kFull or kBlock, seed and
  /// window. `blocks` is of all samples, for kBlock; null otherwise.
  ///
  /// Errors: kInvalidArgument: no source with samples and a weight, too many of
  ///         them, a weight that is no number from 0 on, a step of one source
  ///         at a time where sources end; a schedule that does not rise, or
  ///         after which an epoch would never end
  static Result<std::shared_ptr<const MixedOrder>> make(
      MixOptions options, const OrderOptions& order,
      std::shared_ptr<const BlockMap> blocks);

  std::shared_ptr<const DrawnEpoch> epoch(std::uint64_t epoch) const override;
  std::optional<std::uint64_t> size(std::uint64_t epoch) const override;

  /// Covers all that determines the order, but seed, shuffle and the samples
  /// that the stream began with.
  Hash128 digest() const { return digest_; }
  const MixOptions& options() const { return options_; }
  /// How each source is shuffled.
  Shuffle shuffle() const { return order_.shuffle; }
  std::uint64_t samples() const { return first_.back(); }
  /// As given to make().
  const std::shared_ptr<const BlockMap>& blocks() const { return all_blocks_; }
  /// The samples of each source that have come before a position of an epoch.
  /// A source goes on from there in another mix: `MixSource::begin`.
  std::vector<std::uint64_t> had_before(std::uint64_t epoch,
                                        std::uint64_t position) const;

 private:
  friend class MixedEpoch;

  /// One epoch, as turns. Without an end of sources, an epoch is a part of one
  /// endless stream, which begins `skipped` turns in.
  struct Layout {
    std::shared_ptr<const StagedTurns> turns;
    std::uint64_t skipped = 0;
    std::uint64_t size = 0;            ///< Positions.
    std::vector<std::uint64_t> begin;  ///< By source: samples before all turns.
  };
  /// A place in a source, counted through all laps.
  struct Place {
    std::uint32_t source = 0;
    std::uint64_t number = 0;
  };
  /// A source's order in two laps: one ends while the next one begins.
  struct Laps {
    std::array<std::pair<std::uint64_t, std::optional<EpochOrder>>, 2> orders;
  };

  MixedOrder(MixOptions options, const OrderOptions& order,
             std::shared_ptr<const BlockMap> blocks);

  bool has(std::uint64_t epoch) const {
    return epoch >= options_.first_epoch &&
           epoch - options_.first_epoch < kMostEpochs;
  }
  std::uint32_t most_units() const;
  std::shared_ptr<const Interleave> turns_of(std::span<const double> weights,
                                             std::uint64_t key) const;
  std::shared_ptr<const StagedTurns> scheduled() const;
  std::shared_ptr<const Layout> layout_of(std::uint64_t epoch) const;
  Layout until_all_end(std::uint64_t epoch) const;
  Layout part_of_endless(std::uint64_t epoch) const;
  std::uint64_t end_after(std::uint64_t begin) const;
  EpochOrder lap_of(std::uint32_t source, std::uint64_t lap) const;

  Place place_at(const Layout& layout, std::uint64_t position) const;
  /// Nullopt if it is not of that epoch.
  std::optional<std::uint64_t> position_of(const Layout& layout,
                                           Place place) const;

  MixOptions options_;
  OrderOptions order_;
  Hash128 digest_;
  std::vector<std::uint64_t> first_;  ///< By source, and one more: its samples.
  std::shared_ptr<const BlockMap> all_blocks_;
  std::vector<std::shared_ptr<const BlockMap>> blocks_;  ///< By source.
  std::shared_ptr<const StagedTurns> endless_;  ///< Null if sources end.

  static constexpr std::size_t kKeptLayouts = 4;
  mutable Mutex mutex_;
  /// The turn of the endless stream that each epoch begins with.
  mutable std::vector<std::uint64_t> begins_ LEAT_GUARDED_BY(mutex_);
  mutable std::vector<Laps> laps_ LEAT_GUARDED_BY(mutex_);
  mutable std::array<std::pair<std::uint64_t, std::shared_ptr<const Layout>>,
                     kKeptLayouts>
      layouts_ LEAT_GUARDED_BY(mutex_);
};

}  // namespace leat
