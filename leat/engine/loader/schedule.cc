#include "leat/engine/loader/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/read_sizes.h"

namespace leat {
namespace {

/// Some minutes of work. A larger figure is taken for a mistyped epoch.
constexpr std::uint64_t kMostSimulated = 2'000'000'000;

constexpr std::string_view kRemedies =
    "If ranks meet in each step, as in DistributedDataParallel, they would "
    "pair steps of two epochs, or hang. Say drop_last=True, which leaves these "
    "samples out, or drop_last=\"pad\", which fills the step up, or "
    "drop_last=\"join\" if ranks may differ: they do not meet in the loop, or "
    "they do in torch's Join";

/// Columns whose bytes are fetched, each once, even if several fields use it.
std::vector<std::size_t> fetched_columns(
    const std::vector<DeliveredField>& fields) {
  std::vector<std::size_t> columns;
  for (const DeliveredField& field : fields) {
    if (field.is_fetched()) columns.push_back(field.column);
  }
  std::ranges::sort(columns);
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  return columns;
}

}  // namespace

Schedule::Schedule(const Job& job, Dataset dataset)
    : job_(job), dataset_(std::move(dataset)) {}

Result<void> Schedule::adopt(std::shared_ptr<const Catalogue> made) {
  dataset_.catalogue = std::move(made);
  dataset_.catalogue_source = std::string(to_string(CatalogueSource::kBuilt));
  Result<void> opened = check_world_size();
  if (opened) opened = open_fields();
  if (!opened) forget_catalogue();
  return opened;
}

Result<std::vector<DeliveredField>> Schedule::fields_of(
    const Catalogue& catalogue) const {
  const LoaderOptions& options = job_.options;
  return choose_fields(
      options.ops, catalogue.fields(),
      {.names = options.fields,
       .with_ids = options.ids,
       .has_valid = options.pad,
       .has_batches_of_one = global_batch() == job_.rank.world_size,
       .has_collate = options.has_collate});
}

Result<void> Schedule::open_fields() {
  LEAT_TRY(fields_, fields_of(*dataset_.catalogue));
  const Shuffle shuffle = job_.order.shuffle;
  if (job_.mixed != nullptr) {
    blocks_ = job_.mixed->blocks();
    return {};
  }
  const bool has_pieces = dataset_.catalogue->layout() == Layout::kShards &&
                          shuffle != Shuffle::kFull &&
                          shuffle != Shuffle::kDrawn;
  if (has_windows(shuffle) || has_pieces) {
    blocks_ = std::make_shared<BlockMap>(BlockMap::build(
        *dataset_.catalogue, piece_bytes_of(*dataset_.catalogue)));
  }
  return {};
}

std::optional<std::uint64_t> Schedule::samples() const {
  if (dataset_.catalogue == nullptr) return std::nullopt;
  return dataset_.catalogue->samples();
}

std::optional<std::uint64_t> Schedule::samples_in(std::uint64_t epoch) const {
  if (job_.order.shuffle != Shuffle::kDrawn) return samples();
  return job_.order.drawn->size(epoch);
}

Result<Steps> Schedule::steps_of(std::uint64_t epoch,
                                 std::uint64_t from) const {
  const auto drawn =
      job_.told_order == nullptr ? nullptr : job_.told_order->epoch(epoch);
  return Steps::make({.samples = samples_in(epoch).value_or(0),
                      .start = from,
                      .global_batch = global_batch(),
                      .rank = job_.rank,
                      .tail = job_.tail},
                     drawn == nullptr ? StepRows{} : drawn->rows());
}

std::optional<std::uint64_t> Schedule::batches_of(std::uint64_t epoch,
                                                  std::uint64_t from) const {
  if (!samples_in(epoch)) return std::nullopt;
  const Result<Steps> steps = steps_of(epoch, from);
  if (!steps) return 0;
  const std::uint64_t count = steps->count();
  // Only if the tail is kept can a rank be left without a sample.
  const bool is_left_out = count > 0 && steps->size(count - 1) == 0;
  return is_left_out ? count - 1 : count;
}

Result<void> Schedule::check_steps(std::uint64_t epoch,
                                   std::uint64_t from) const {
  if (job_.told_order != nullptr) return {};
  return check_steps_of(epoch, from);
}

namespace {

/// The last step may have too few rows for all ranks.
Result<void> check_rows(const Steps& steps) {
  const std::uint64_t count = steps.count();
  if (count == 0) return {};
  if (steps.has_some_for_all(count - 1)) return {};
  return invalid(
      "the last step has too few rows for {} ranks: some would get {} batches "
      "and others {}. {}",
      steps.rank().world_size, count, count - 1, kRemedies);
}

}  // namespace

Result<void> Schedule::check_steps_of(std::uint64_t epoch,
                                      std::uint64_t from) const {
  const Result<Steps> steps = steps_of(epoch, from);
  const std::optional<std::uint64_t> samples = samples_in(epoch);
  if (!steps) return steps.error();
  const std::uint64_t world = job_.rank.world_size;
  if (job_.tail != Tail::kKeep || job_.options.join || world == 1) return {};
  if (job_.told_order != nullptr) {
    if (const auto told = job_.told_order->epoch(epoch);
        told != nullptr && told->rows().ends != nullptr) {
      return check_rows(*steps);
    }
  }
  if (!samples) {
    return invalid(
        "drop_last=False of shards that are yet to be indexed: nobody knows "
        "whether the last step has a sample for each of {} ranks. {}",
        world, kRemedies);
  }
  const std::uint64_t last = (*samples - from) % global_batch();
  if (last == 0 || last >= world) return {};
  return invalid(
      "{} of {} ranks would get {} batches and the others {}: of {} samples, "
      "{} remain for the last step, which are too few for all. {}",
      last, world, steps->count(), steps->count() - 1, *samples - from, last,
      kRemedies);
}

Result<void> Schedule::check_world_size() const {
  const std::uint64_t samples = dataset_.catalogue->samples();
  if (job_.rank.world_size <= samples) return {};
  return invalid(
      "world_size={} ranks, but {} has {} samples: some would get none; use "
      "fewer ranks",
      job_.rank.world_size, dataset_.url, samples);
}

Result<void> Schedule::check_known(std::uint64_t epoch) const {
  if (job_.mixed != nullptr && !job_.mixed->size(epoch)) {
    const std::uint64_t first = job_.mixed->options().first_epoch;
    return invalid(
        "the mix began with epoch {}, and has no epoch {}; its epochs are {} "
        "to {}",
        first, epoch, first, first + MixedOrder::kMostEpochs - 1);
  }
  const auto& told = job_.told_order;
  if (told == nullptr || told->epoch(epoch) != nullptr) return {};
  return invalid("nobody has told the order of epoch {}: begin it by iter()",
                 epoch);
}

bool Schedule::is_in_lanes() const {
  return job_.rank.world_size > 1 && job_.order.shuffle == Shuffle::kBlock &&
         dataset_.catalogue != nullptr &&
         job_.reads_pieces(dataset_.catalogue->layout());
}

/// Looks ahead as far as training goes; if its end is unknown, as far as a
/// sample may have to wait.
NextUseOptions Schedule::next_use_options(std::uint64_t epoch,
                                          std::uint64_t from) const {
  // Its own rank, or the rank that holds it, reads a sample in every epoch;
  // another rank does after a few.
  const std::uint32_t world = job_.rank.world_size;
  const RankRun met =
      job_.locality() != Locality::kNone
          ? RankRun{.first = 0, .count = world, .world_size = world}
          : job_.readers;
  const std::uint64_t horizon = epoch + 2 + 4 * (met.world_size / met.count);
  return {.samples = samples_in(epoch).value_or(0),
          .dataset_samples = samples().value_or(0),
          .order = job_.order,
          .blocks = blocks_,
          .global_batch = global_batch(),
          .tail = job_.tail,
          .ranks = met,
          .is_in_lanes = is_in_lanes(),
          .epoch = epoch,
          .start = from,
          .end_epoch = job_.options.epochs.value_or(horizon),
          .epoch_time = kEpochTime};
}

Result<std::optional<NextUse>> Schedule::next_use(std::uint64_t epoch,
                                                  std::uint64_t from) const {
  if (!job_.options.cache) return std::optional<NextUse>();
  LEAT_TRY(NextUse next, NextUse::make(next_use_options(epoch, from)));
  return std::optional<NextUse>(std::move(next));
}

std::function<std::uint64_t(SampleId)> Schedule::costs_of_samples() const {
  return [catalogue = dataset_.catalogue,
          columns = fetched_columns(fields_)](SampleId sample) {
    std::uint64_t cost = 0;
    for (const std::size_t column : columns) {
      cost += read_size_of(catalogue->range(column, sample)).cost;
    }
    return cost;
  };
}

Result<std::optional<ReadyFirst>> Schedule::ready_first(
    const Steps& steps, const std::vector<std::uint64_t>& behind) const {
  if (job_.first_within() == 0 && behind.empty()) {
    return std::optional<ReadyFirst>();
  }
  LEAT_TRY(ReadyFirst first,
           ReadyFirst::make(steps, dataset_.catalogue->samples(),
                            job_.first_within(), behind));
  return std::optional<ReadyFirst>(std::move(first));
}

Result<void> Schedule::plan_dealing() {
  if (!deals_to_holders(job_.locality())) return {};
  const CacheOptions& cache = *job_.options.cache;
  holders_ = HolderDealingOptions{
      // Before there is a catalogue, assumes a single step.
      .samples = samples().value_or(global_batch()),
      .order = job_.order,
      .blocks = blocks_,
      .tail = job_.tail,
      .world_size = job_.rank.world_size,
      .policy = cache.policy,
      // Each rank may write this much of the largest tier.
      .capacity =
          std::max(cache.ram_bytes, cache.disk_limit_bytes.value_or(0)) /
          job_.local.world_size,
      .unit = CapacityUnit::kBytes,
      .is_balanced = job_.options.locality == Locality::kBalance,
      .epochs = job_.options.epochs.value_or(kNever)};
  if (dataset_.catalogue != nullptr) holders_->cost = costs_of_samples();
  // So an error shows now, and not at the first batch.
  LEAT_TRY_VOID(make_dealing(0));
  return {};
}

Result<std::unique_ptr<HolderDealing>> Schedule::make_dealing(
    std::uint64_t epoch) const {
  if (epoch > kMostSimulated / std::max<std::uint64_t>(1, holders_->samples)) {
    return invalid(
        "to begin epoch {} with locality=\"{}\" the caches of all {} epochs "
        "before have to be simulated, and at {} samples that is past {}; begin "
        "at a lower epoch, or with locality=\"sticky\", which needs none",
        epoch, to_string(job_.options.locality), epoch, holders_->samples,
        kMostSimulated);
  }
  HolderDealingOptions now = *holders_;
  now.global_batch = global_batch();
  return HolderDealing::make(now);
}

std::string Schedule::dealing_in_words() const {
  std::string name(to_string(job_.options.locality));
  if (is_in_lanes()) name = "lanes";
  if (job_.deals_by_shard(dataset_.catalogue == nullptr
                              ? Layout::kShards
                              : dataset_.catalogue->layout())) {
    name = "shards";
  }
  if (job_.mixed != nullptr) {
    name += fmt::format(", a mix of {} sources, {}",
                        job_.mixed->options().sources.size(),
                        job_.mixed->digest().hex());
  }
  if (job_.options.weights != nullptr) {
    const WeightedOrder& drawn = *job_.options.weights;
    name += fmt::format(", {} samples an epoch drawn by weights {}",
                        drawn.size(0).value_or(0), drawn.digest().hex());
  }
  if (!holders_) return name;
  std::vector<std::string> columns;
  if (job_.order.shuffle == Shuffle::kStream) {
    // A rank without a catalogue has to answer the same as one that has it.
    columns = job_.options.fields;
  } else {
    for (const std::size_t column : fetched_columns(fields_)) {
      columns.push_back(dataset_.catalogue->fields()[column].name);
    }
  }
  return fmt::format("{} over caches of {} bytes a rank, {}, of {}", name,
                     holders_->capacity, holders_->policy,
                     fmt::join(columns, ", "));
}

namespace {

MixState mix_state(const MixedOrder& mixed, std::uint64_t epoch,
                   std::uint64_t position) {
  MixState state{.first_epoch = mixed.options().first_epoch,
                 .shuffle = std::string(word_of(mixed.shuffle()))};
  for (const MixSource& source : mixed.options().sources) {
    state.sources.push_back(source.name);
    state.begin.push_back(source.begin);
  }
  // An epoch that it does not have has nothing in it.
  state.had =
      mixed.size(epoch) ? mixed.had_before(epoch, position) : state.begin;
  return state;
}

}  // namespace

Result<void> check_next_of_mix(const Job& job, const Schedule& schedule,
                               std::uint64_t epoch, std::uint64_t from) {
  if (job.mixed == nullptr) return {};
  LEAT_TRY_VOID(schedule.check_known(epoch));
  return schedule.check_steps(epoch, from);
}

std::optional<DrawnState> drawn_state(const Job& job, std::uint64_t epoch,
                                      std::uint64_t position,
                                      const std::string& resumed) {
  if (job.order.shuffle != Shuffle::kDrawn) return std::nullopt;
  if (job.mixed != nullptr) {
    return DrawnState{.by = DrawnBy::kMix,
                      .digest = job.mixed->digest().hex(),
                      .samples_per_epoch = job.mixed->size(epoch).value_or(0),
                      .mix = mix_state(*job.mixed, epoch, position)};
  }
  if (const auto& weights = job.options.weights; weights != nullptr) {
    return DrawnState{.by = DrawnBy::kWeights,
                      .digest = weights->digest().hex(),
                      .samples_per_epoch = weights->size(epoch).value_or(0)};
  }
  const std::optional<Hash128> digest = job.told_order->digest(epoch);
  return DrawnState{.by = DrawnBy::kSampler,
                    .digest = digest ? digest->hex() : resumed};
}

}  // namespace leat
