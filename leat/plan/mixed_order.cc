#include "leat/plan/mixed_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

/// Draws the order of turns independently of the orders within sources.
constexpr std::uint64_t kTurnSalt = 0x6d69786564ULL;

/// Whether an epoch goes on until each source has ended.
bool has_ends(const MixOptions& options) {
  return options.stop == MixStop::kAllExhaustedWithoutReplacement &&
         options.samples_per_epoch == 0;
}

Result<void> check_weight(const MixSource& source, double weight) {
  if (std::isfinite(weight) && weight >= 0) return {};
  return invalid(
      "source \"{}\" has the weight {}; a weight is a number from 0 on",
      source.name, weight);
}

Result<void> check_sources(const MixOptions& options) {
  const auto& sources = options.sources;
  if (sources.empty() || sources.size() > Interleave::kMostSources) {
    return invalid("a mix of {} sources; it has 1 to {}", sources.size(),
                   Interleave::kMostSources);
  }
  bool has_some = false;
  for (const MixSource& source : sources) {
    LEAT_TRY_VOID(check_weight(source, source.weight));
    if (source.samples == 0) {
      return invalid("source \"{}\" has no samples; leave it out", source.name);
    }
    has_some |= source.weight > 0;
  }
  if (!has_some) return invalid("all sources of the mix have weight 0");
  return {};
}

Result<void> check_schedule(const MixOptions& options) {
  std::uint64_t before = 0;
  if (options.schedule.size() > MixedOrder::kMostPoints) {
    return invalid("a schedule of {} points; it has at most {}",
                   options.schedule.size(), MixedOrder::kMostPoints);
  }
  for (const MixStage& stage : options.schedule) {
    if (stage.first < before + options.global_batch) {
      return invalid(
          "the schedule changes weights at sample {}, and before at {}; "
          "samples rise, by {} at least",
          stage.first, before, options.global_batch);
    }
    before = stage.first;
    LEAT_CHECK(stage.weights.size() == options.sources.size());
    for (std::size_t i = 0; i < stage.weights.size(); ++i) {
      LEAT_TRY_VOID(check_weight(options.sources[i], stage.weights[i]));
    }
    if (std::ranges::max(stage.weights) == 0) {
      return invalid("all sources have weight 0 from sample {} on",
                     stage.first);
    }
  }
  if (options.schedule.empty()) return {};
  if (has_ends(options)) {
    return invalid(
        "a schedule changes the weights of sources that begin anew; give "
        "stop=\"all_exhausted\" or samples=");
  }
  if (options.stop != MixStop::kAllExhausted ||
      options.samples_per_epoch != 0) {
    return {};
  }
  const auto& last = options.schedule.back();
  const auto found = std::ranges::find(last.weights, 0.0);
  if (found == last.weights.end()) return {};
  const auto source = static_cast<std::size_t>(found - last.weights.begin());
  return invalid(
      "source \"{}\" has weight 0 from sample {} on, so it might never be "
      "exhausted, and an epoch never end; give samples= in place of stop=",
      options.sources[source].name, last.first);
}

Result<void> check(const MixOptions& options) {
  LEAT_TRY_VOID(check_sources(options));
  LEAT_TRY_VOID(check_schedule(options));
  if (options.composition == Composition::kPerSource && has_ends(options)) {
    return invalid(
        "composition=\"per_source\" gives whole steps to a source, and the "
        "last step of a source that ends would not be whole; give "
        "stop=\"all_exhausted\" or samples=");
  }
  return {};
}

/// The samples of a source in an epoch, if each has an end.
std::uint64_t wanted_of(const MixSource& source) {
  if (source.weight == 0) return 0;
  return source.wanted == 0 ? source.samples : source.wanted;
}

/// The weights of each source, as parts of 1.
std::vector<double> parts_of_one(std::span<const double> weights) {
  const double most = std::ranges::max(weights);
  double sum = 0;
  for (const double weight : weights) sum += weight / most;
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / most / sum);
  return shares;
}

/// Stages of like length from each point to the next, each with the weights of
/// its middle: after each, sources have had the integral of their weights.
std::vector<MixStage> ramp_of(std::span<const MixStage> points,
                              std::uint64_t least) {
  std::vector<MixStage> stages;
  for (std::size_t p = 0; p + 1 < points.size(); ++p) {
    const MixStage& from = points[p];
    const MixStage& to = points[p + 1];
    const std::uint64_t length = to.first - from.first;
    const std::uint64_t parts =
        std::clamp<std::uint64_t>(length / least, 1, MixedOrder::kRampStages);
    for (std::uint64_t i = 0; i < parts; ++i) {
      const double at =
          (static_cast<double>(i) + 0.5) / static_cast<double>(parts);
      MixStage stage{.first = from.first + length / parts * i};
      for (std::size_t k = 0; k < from.weights.size(); ++k) {
        stage.weights.push_back(std::lerp(from.weights[k], to.weights[k], at));
      }
      stages.push_back(std::move(stage));
    }
  }
  stages.push_back(points.back());
  return stages;
}

}  // namespace

/// One epoch of it.
class MixedEpoch final : public DrawnEpoch {
 public:
  MixedEpoch(std::shared_ptr<const MixedOrder> order,
             std::shared_ptr<const MixedOrder::Layout> layout)
      : order_(std::move(order)), layout_(std::move(layout)) {}

  std::uint64_t size() const override { return layout_->size; }

  SampleId at(std::uint64_t position) const override {
    const Found found = find(position);
    return {order_->first_[found.source] + found.order.at(found.place).value};
  }

  std::uint32_t source_of(SampleId sample) const override {
    const std::vector<std::uint64_t>& first = order_->first_;
    const auto after = std::ranges::upper_bound(first, sample.value);
    return static_cast<std::uint32_t>(after - first.begin() - 1);
  }

  bool has_lanes() const override {
    return order_->order_.shuffle == Shuffle::kBlock;
  }

  std::uint32_t place_of(std::uint64_t position) const override {
    const Found found = find(position);
    return found.order.place_of(found.place);
  }

  std::optional<std::uint64_t> position_near(
      SampleId sample, std::uint64_t position) const override {
    const Found found = find(position);
    const std::uint64_t first = order_->first_[found.source];
    if (sample.value < first ||
        sample.value >= order_->first_[found.source + 1]) {
      return std::nullopt;
    }
    const std::uint64_t place = found.order.position_of({sample.value - first});
    return order_->position_of(
        *layout_,
        {.source = found.source, .number = found.number - found.place + place});
  }

 private:
  struct Found {
    std::uint32_t source;
    std::uint64_t number;  ///< Through all laps.
    std::uint64_t place;   ///< In the lap.
    EpochOrder order;      ///< The lap's.
  };

  Found find(std::uint64_t position) const {
    const auto [source, number] = order_->place_at(*layout_, position);
    const std::uint64_t samples = order_->options_.sources[source].samples;
    return {.source = source,
            .number = number,
            .place = number % samples,
            .order = order_->lap_of(source, number / samples)};
  }

  const std::shared_ptr<const MixedOrder> order_;
  const std::shared_ptr<const MixedOrder::Layout> layout_;
};

Result<std::shared_ptr<const MixedOrder>> MixedOrder::make(
    MixOptions options, const OrderOptions& order,
    std::shared_ptr<const BlockMap> blocks) {
  if (options.composition != Composition::kPerSource) options.global_batch = 1;
  LEAT_TRY_VOID(check(options));
  return std::shared_ptr<const MixedOrder>(
      new MixedOrder(std::move(options), order, std::move(blocks)));
}

MixedOrder::MixedOrder(MixOptions options, const OrderOptions& order,
                       std::shared_ptr<const BlockMap> blocks)
    : options_(std::move(options)),
      order_(order),
      all_blocks_(std::move(blocks)) {
  Hasher128 told;
  told.update(static_cast<std::uint64_t>(options_.stop));
  told.update(static_cast<std::uint64_t>(options_.composition));
  told.update(options_.samples_per_epoch);
  told.update(options_.global_batch);
  first_.push_back(0);
  std::vector<double> weights;
  for (const MixSource& source : options_.sources) {
    told.update(source.name.size());
    told.update(as_bytes(source.name));
    told.update(source.samples);
    told.update(source.wanted);
    weights.push_back(source.weight);
    const std::uint64_t end = first_.back() + source.samples;
    if (all_blocks_ != nullptr) {
      blocks_.push_back(std::make_shared<const BlockMap>(
          all_blocks_->part(first_.back(), end)));
    }
    first_.push_back(end);
  }
  for (const std::uint32_t units :
       Interleave::units_of(weights, most_units())) {
    told.update(units);
  }
  told.update(options_.is_ramp ? 1 : 0);
  for (const MixStage& stage : options_.schedule) {
    told.update(stage.first);
    for (const double share : parts_of_one(stage.weights)) {
      told.update(std::bit_cast<std::uint64_t>(share));
    }
  }
  digest_ = told.digest();
  laps_.resize(options_.sources.size());
  if (!has_ends(options_)) endless_ = scheduled();
  begins_.push_back(0);
}

/// Makes the turns of the endless stream.
std::shared_ptr<const StagedTurns> MixedOrder::scheduled() const {
  std::vector<MixStage> points(1);
  for (const MixSource& source : options_.sources) {
    points[0].weights.push_back(source.weight);
  }
  points.insert(points.end(), options_.schedule.begin(),
                options_.schedule.end());
  for (MixStage& point : points) point.weights = parts_of_one(point.weights);
  const std::uint64_t batch = options_.global_batch;
  auto turns = std::make_shared<StagedTurns>();
  for (const MixStage& stage :
       options_.is_ramp ? ramp_of(points, batch) : points) {
    turns->add(stage.first / batch, turns_of(stage.weights, stage.first));
  }
  return turns;
}

/// The most units of a stage. There may be many stages, so each gets few.
std::uint32_t MixedOrder::most_units() const {
  const bool is_one = !has_ends(options_) &&
                      options_.composition == Composition::kStratified &&
                      options_.schedule.empty();
  return is_one ? Interleave::kMostUnits : Interleave::kMostRandomUnits;
}

std::shared_ptr<const Interleave> MixedOrder::turns_of(
    std::span<const double> weights, std::uint64_t key) const {
  return std::make_shared<const Interleave>(
      Interleave::units_of(weights, most_units()), options_.composition,
      mix64(order_.seed ^ kTurnSalt) + key);
}

/// The first turn after which an epoch that began with one is over.
std::uint64_t MixedOrder::end_after(std::uint64_t begin) const {
  const std::uint64_t batch = options_.global_batch;
  if (options_.samples_per_epoch != 0) {
    return begin +
           std::max<std::uint64_t>(1, options_.samples_per_epoch / batch);
  }
  // The end of most sources need not be known to the turn.
  const bool is_first = options_.stop == MixStop::kFirstExhausted;
  std::vector<std::pair<Interleave::Turn, StagedTurns::Bounds>> last;
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t i = 0; i < options_.sources.size(); ++i) {
    const std::uint64_t turns =
        (options_.sources[i].samples + batch - 1) / batch;
    const Interleave::Turn turn = {
        .source = i, .number = endless_->turns_before(i, begin) + turns - 1};
    const auto bounds = endless_->bounds_of(turn);
    if (!bounds) continue;  // It has no weight from some turn on.
    last.emplace_back(turn, *bounds);
    least = std::max(least, bounds->least);
    most = std::min(most, bounds->end);
  }
  std::uint64_t end = is_first ? most : begin;
  for (const auto& [turn, bounds] : last) {
    if (is_first ? bounds.least >= most : bounds.end <= least) continue;
    const std::uint64_t its = *endless_->position_of(turn) + 1;
    end = is_first ? std::min(end, its) : std::max(end, its);
  }
  return end;
}

MixedOrder::Layout MixedOrder::part_of_endless(std::uint64_t epoch) const {
  const std::uint64_t number = epoch - options_.first_epoch;
  const MutexLock lock(mutex_);
  while (begins_.size() <= number + 1) {
    begins_.push_back(end_after(begins_.back()));
  }
  Layout layout{
      .turns = endless_,
      .skipped = begins_[number],
      .size = (begins_[number + 1] - begins_[number]) * options_.global_batch,
      .begin = {}};
  for (const MixSource& source : options_.sources) {
    layout.begin.push_back(source.begin);
  }
  return layout;
}

/// Whenever a source ends, a stage of the others begins.
MixedOrder::Layout MixedOrder::until_all_end(std::uint64_t epoch) const {
  const std::uint64_t number = epoch - options_.first_epoch;
  Layout layout;
  std::vector<double> weights;
  std::vector<std::uint64_t> left;
  for (const MixSource& source : options_.sources) {
    left.push_back(wanted_of(source));
    layout.begin.push_back(source.begin + number * left.back());
    weights.push_back(left.back() == 0 ? 0 : source.weight);
  }
  auto stages = std::make_shared<StagedTurns>();
  while (std::ranges::max(weights) > 0) {
    const auto turns = turns_of(weights, mix64(epoch) + layout.size);
    stages->add(layout.size, turns);
    std::uint64_t length = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) continue;
      length = std::min(
          length, turns->position_of({.source = i, .number = left[i] - 1}) + 1);
    }
    for (std::uint32_t i = 0; i < left.size(); ++i) {
      left[i] -= turns->turns_before(i, length);
      if (left[i] == 0) weights[i] = 0;
    }
    layout.size += length;
  }
  layout.turns = std::move(stages);
  return layout;
}

std::shared_ptr<const MixedOrder::Layout> MixedOrder::layout_of(
    std::uint64_t epoch) const {
  LEAT_CHECK(epoch >= options_.first_epoch);
  const std::size_t at = epoch % kKeptLayouts;
  {
    const MutexLock lock(mutex_);
    const auto& [kept, layout] = layouts_[at];
    if (layout != nullptr && kept == epoch) return layout;
  }
  auto made = std::make_shared<const Layout>(
      has_ends(options_) ? until_all_end(epoch) : part_of_endless(epoch));
  const MutexLock lock(mutex_);
  layouts_[at] = {epoch, made};
  return made;
}

std::shared_ptr<const DrawnEpoch> MixedOrder::epoch(std::uint64_t epoch) const {
  if (!has(epoch)) return nullptr;
  return std::make_shared<const MixedEpoch>(shared_from_this(),
                                            layout_of(epoch));
}

std::optional<std::uint64_t> MixedOrder::size(std::uint64_t epoch) const {
  if (!has(epoch)) return std::nullopt;
  return layout_of(epoch)->size;
}

std::vector<std::uint64_t> MixedOrder::had_before(
    std::uint64_t epoch, std::uint64_t position) const {
  const auto layout = layout_of(epoch);
  const std::uint64_t batch = options_.global_batch;
  const std::uint64_t turn = layout->skipped + position / batch;
  std::vector<std::uint64_t> had = layout->begin;
  for (std::uint32_t i = 0; i < had.size(); ++i) {
    had[i] += layout->turns->turns_before(i, turn) * batch;
  }
  if (const std::uint64_t rest = position % batch; rest != 0) {
    had[layout->turns->at(turn).source] += rest;
  }
  return had;
}

MixedOrder::Place MixedOrder::place_at(const Layout& layout,
                                       std::uint64_t position) const {
  const std::uint64_t batch = options_.global_batch;
  const auto [source, turn] =
      layout.turns->at(layout.skipped + position / batch);
  return {.source = source,
          .number = layout.begin[source] + turn * batch + position % batch};
}

std::optional<std::uint64_t> MixedOrder::position_of(const Layout& layout,
                                                     Place place) const {
  if (place.number < layout.begin[place.source]) return std::nullopt;
  const std::uint64_t batch = options_.global_batch;
  const std::uint64_t number = place.number - layout.begin[place.source];
  const auto turn = layout.turns->position_of(
      {.source = place.source, .number = number / batch});
  if (!turn || *turn < layout.skipped) return std::nullopt;
  const std::uint64_t position =
      (*turn - layout.skipped) * batch + number % batch;
  if (position >= layout.size) return std::nullopt;
  return position;
}

EpochOrder MixedOrder::lap_of(std::uint32_t source, std::uint64_t lap) const {
  const MutexLock lock(mutex_);
  auto& [kept, order] = laps_[source].orders[lap % 2];
  if (!order || kept != lap) {
    OrderOptions its = order_;
    its.seed =
        mix64(order_.seed ^ xxh3_64(as_bytes(options_.sources[source].name)));
    kept = lap;
    order.emplace(options_.sources[source].samples, its,
                  blocks_.empty() ? nullptr : blocks_[source], lap);
  }
  return *order;
}

}  // namespace leat
