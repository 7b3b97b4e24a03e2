#include "leat/plan/mixed_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "leat/base/check.h"

namespace leat {
namespace {

/// Keeps the order of turns apart from the orders of sources.
constexpr std::uint64_t kTurnSalt = 0x6d69786564ULL;

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Result<void> check(const MixOptions& options) {
  const auto& sources = options.sources;
  if (sources.empty() || sources.size() > Interleave::kMostSources) {
    return refuse(fmt::format("a mix of {} sources; it has 1 to {}",
                              sources.size(), Interleave::kMostSources));
  }
  bool has_some = false;
  for (const MixSource& source : sources) {
    if (!std::isfinite(source.weight) || source.weight < 0) {
      return refuse(
          fmt::format("source \"{}\" has the weight {}; a weight is a "
                      "number from 0 on",
                      source.name, source.weight));
    }
    if (source.samples == 0) {
      return refuse(fmt::format("source \"{}\" has no samples; leave it out",
                                source.name));
    }
    has_some |= source.weight > 0;
  }
  if (!has_some) return refuse("all sources of the mix have weight 0");
  if (options.composition == Composition::kPerSource &&
      options.stop == MixStop::kAllExhaustedWithoutReplacement &&
      options.samples_per_epoch == 0) {
    return refuse(
        "composition=\"per_source\" gives whole steps to a source, and the "
        "last step of a source that ends would not be whole; give "
        "stop=\"all_exhausted\" or samples=");
  }
  return {};
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
    EpochOrder order;      ///< Of the lap.
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
  LEAT_TRY_VOID(check(options));
  return std::shared_ptr<const MixedOrder>(
      new MixedOrder(std::move(options), order, std::move(blocks)));
}

MixedOrder::MixedOrder(MixOptions options, const OrderOptions& order,
                       std::shared_ptr<const BlockMap> blocks)
    : options_(std::move(options)),
      order_(order),
      all_blocks_(std::move(blocks)) {
  if (options_.composition != Composition::kPerSource) {
    options_.global_batch = 1;
  }
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
  digest_ = told.digest();
  laps_.resize(options_.sources.size());
  if (!has_ends()) endless_ = turns_of(weights, 0);
  begins_.push_back(0);
}

/// Stages may be as many as sources, so each is given few.
std::uint32_t MixedOrder::most_units() const {
  return has_ends() || options_.composition != Composition::kStratified
             ? Interleave::kMostRandomUnits
             : Interleave::kMostUnits;
}

std::uint64_t MixedOrder::wanted_of(std::uint32_t source) const {
  const MixSource& its = options_.sources[source];
  if (its.weight == 0) return 0;
  return its.wanted == 0 ? its.samples : its.wanted;
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
  const bool is_first = options_.stop == MixStop::kFirstExhausted;
  std::uint64_t end =
      is_first ? std::numeric_limits<std::uint64_t>::max() : begin;
  for (std::uint32_t i = 0; i < options_.sources.size(); ++i) {
    if (!endless_->has(i)) continue;
    const std::uint64_t turns =
        (options_.sources[i].samples + batch - 1) / batch;
    const std::uint64_t last = endless_->turns_before(i, begin) + turns - 1;
    const std::uint64_t its =
        endless_->position_of({.source = i, .number = last}) + 1;
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
      .stages = {}, .skipped = begins_[number], .size = 0, .begin = {}};
  layout.size = (begins_[number + 1] - begins_[number]) * options_.global_batch;
  for (const MixSource& source : options_.sources) {
    layout.begin.push_back(source.begin);
  }
  layout.stages.push_back(
      {.first = 0,
       .had = std::vector<std::uint64_t>(options_.sources.size()),
       .turns = endless_});
  return layout;
}

/// Whenever a source ends, a stage of the others begins.
MixedOrder::Layout MixedOrder::staged(std::uint64_t epoch) const {
  const std::uint64_t number = epoch - options_.first_epoch;
  const auto sources = static_cast<std::uint32_t>(options_.sources.size());
  Layout layout;
  std::vector<double> weights;
  std::vector<std::uint64_t> left;
  for (std::uint32_t i = 0; i < sources; ++i) {
    const MixSource& source = options_.sources[i];
    layout.begin.push_back(source.begin + number * wanted_of(i));
    weights.push_back(source.weight);
    left.push_back(wanted_of(i));
  }
  std::vector<std::uint64_t> had(sources);
  while (std::ranges::max(weights) > 0) {
    auto turns = turns_of(weights, mix64(epoch) + layout.stages.size());
    layout.stages.push_back({.first = layout.size, .had = had, .turns = turns});
    std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t i = 0; i < sources; ++i) {
      if (weights[i] == 0) continue;
      end = std::min(
          end, turns->position_of({.source = i, .number = left[i] - 1}) + 1);
    }
    for (std::uint32_t i = 0; i < sources; ++i) {
      if (weights[i] == 0) continue;
      const std::uint64_t came = turns->turns_before(i, end);
      had[i] += came;
      left[i] -= came;
      if (left[i] == 0) weights[i] = 0;
    }
    layout.size += end;
  }
  return layout;
}

std::shared_ptr<const MixedOrder::Layout> MixedOrder::layout_of(
    std::uint64_t epoch) const {
  LEAT_CHECK(epoch >= options_.first_epoch);
  const std::size_t at = epoch % layouts_.size();
  {
    const MutexLock lock(mutex_);
    const auto& [kept, layout] = layouts_[at];
    if (layout != nullptr && kept == epoch) return layout;
  }
  auto made = std::make_shared<const Layout>(
      has_ends() ? staged(epoch) : part_of_endless(epoch));
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
  const auto stage =
      std::ranges::upper_bound(layout->stages, turn, {}, &Stage::first) - 1;
  std::vector<std::uint64_t> had;
  for (std::uint32_t i = 0; i < options_.sources.size(); ++i) {
    const std::uint64_t turns =
        stage->had[i] + stage->turns->turns_before(i, turn - stage->first);
    had.push_back(layout->begin[i] + turns * batch);
  }
  if (const std::uint64_t rest = position % batch; rest != 0) {
    had[stage->turns->at(turn - stage->first).source] += rest;
  }
  return had;
}

MixedOrder::Place MixedOrder::place_at(const Layout& layout,
                                       std::uint64_t position) const {
  const std::uint64_t batch = options_.global_batch;
  const std::uint64_t turn = layout.skipped + position / batch;
  auto stage = layout.stages.begin();
  if (layout.stages.size() > 1) {
    stage =
        std::ranges::upper_bound(layout.stages, turn, {}, &Stage::first) - 1;
  }
  const Interleave::Turn its = stage->turns->at(turn - stage->first);
  const std::uint64_t number = stage->had[its.source] + its.number;
  return {
      .source = its.source,
      .number = layout.begin[its.source] + number * batch + position % batch};
}

std::optional<std::uint64_t> MixedOrder::position_of(const Layout& layout,
                                                     Place place) const {
  if (place.number < layout.begin[place.source]) return std::nullopt;
  const std::uint64_t batch = options_.global_batch;
  const std::uint64_t number = place.number - layout.begin[place.source];
  const std::uint64_t turns = number / batch;
  // The last stage that had no more of its turns before it.
  auto stage = std::ranges::upper_bound(
      layout.stages, turns, {},
      [&](const Stage& one) { return one.had[place.source]; });
  if (stage == layout.stages.begin()) return std::nullopt;
  --stage;
  if (!stage->turns->has(place.source)) return std::nullopt;
  const std::uint64_t turn =
      stage->first +
      stage->turns->position_of(
          {.source = place.source, .number = turns - stage->had[place.source]});
  if (turn < layout.skipped) return std::nullopt;
  const std::uint64_t position =
      (turn - layout.skipped) * batch + number % batch;
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
