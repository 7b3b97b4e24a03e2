// Orders that are no permutations of the dataset: drawn by weight, or told by
// the caller, epoch by epoch.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "leat/engine/loader_machine.h"

namespace leat {
namespace {

Error refuse(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

/// The most samples that a step has.
std::uint64_t largest_step(const GivenEpoch& given) {
  std::uint64_t largest = 0;
  std::uint64_t before = given.first;
  for (const std::uint64_t end : given.ends) {
    largest = std::max(largest, end - before);
    before = end;
  }
  return largest;
}

}  // namespace

void Loader::Machine::configure_drawn() {
  order.shuffle = Shuffle::kDrawn;
  order.seed = options.seed;
  order.window_blocks = options.shuffle_window;
  if (options.weights != nullptr) {
    order.drawn = options.weights.get();
    return;
  }
  told_order = std::make_shared<GivenOrder>(
      dataset.catalogue == nullptr ? 0 : dataset.catalogue->samples());
  order.drawn = told_order.get();
}

Result<void> Loader::Machine::check_drawn() const {
  if (order.shuffle != Shuffle::kDrawn) return {};
  constexpr std::string_view by = "sampler=";
  if (dataset.catalogue == nullptr) {
    return refuse(fmt::format(
        "{} counts samples, and these shards have no index yet; make one with "
        "`leat index`",
        by));
  }
  const std::uint64_t samples = dataset.catalogue->samples();
  if (options.weights != nullptr && options.weights->samples() != samples) {
    return refuse(fmt::format(
        "weights= has {} weights, and {} has {} samples; give one for each",
        options.weights->samples(), dataset.url, samples));
  }
  const auto cannot = [&](std::string_view what) {
    return refuse(
        fmt::format("{} and {} both say which samples come when, and where; "
                    "leave one out",
                    by, what));
  };
  if (locality() != Locality::kNone) {
    return cannot(fmt::format("locality=\"{}\"", to_string(options.locality)));
  }
  if (!options.cache) return {};
  if (first_within() != 0) return cannot("first_within= of a cache");
  if (options.cache->placement != Placement::kAny) {
    return cannot("placement= of a cache");
  }
  if (options.cache->peer_placement == PeerPlacement::kFrequency) {
    return cannot("peer_placement=\"frequency\" of a cache");
  }
  return {};
}

Result<void> Loader::Machine::check_known(std::uint64_t which) const {
  if (told_order == nullptr || told_order->epoch(which) != nullptr) return {};
  return refuse(fmt::format(
      "nobody has told the order of epoch {}: begin it by iter()", which));
}

std::optional<std::uint64_t> Loader::Machine::samples_in(
    std::uint64_t which) const {
  if (order.shuffle != Shuffle::kDrawn) return samples();
  return order.drawn->size(which);
}

std::optional<DrawnState> Loader::Machine::drawn_now() const {
  if (order.shuffle != Shuffle::kDrawn) return std::nullopt;
  if (options.weights != nullptr) {
    return DrawnState{
        .is_by_weight = true,
        .digest = options.weights->digest().hex(),
        .samples_per_epoch = options.weights->size(epoch).value_or(0)};
  }
  const std::optional<Hash128> digest = told_order->digest(epoch);
  return DrawnState{.is_by_weight = false,
                    .digest = digest ? digest->hex() : resumed_order};
}

Result<void> Loader::give_order(std::uint64_t epoch, GivenEpoch given,
                                bool starts) {
  Machine& m = *machine_;
  LEAT_TRY(const Machine::Visit visit, m.enter());
  std::shared_ptr<EpochRun> old;  // End outside the lock.
  std::shared_ptr<EpochRun> old_next;
  const MutexLock lock(m.mutex);
  LEAT_TRY_VOID(m.check_open());
  const std::uint64_t first = given.first;
  const std::uint64_t largest = largest_step(given);
  LEAT_TRY_VOID(m.told_order->give(epoch, std::move(given)));
  if (epoch == m.epoch && !m.resumed_order.empty() &&
      m.told_order->digest(epoch)->hex() != m.resumed_order) {
    return refuse(fmt::format(
        "the state is at position {} of epoch {}, and the sampler gives "
        "another "
        "order for that epoch than it gave before; seed its generator the same",
        m.position, epoch));
  }
  LEAT_TRY_VOID(m.check_steps_of(
      epoch, starts ? first : (epoch == m.epoch ? m.position : 0)));
  if (largest > m.global_batch) {
    m.global_batch = largest;
    m.begin_lookahead();
  }
  if (m.next_run != nullptr && m.next_run->epoch() == epoch) {
    old_next = std::move(m.next_run);
  }
  if (starts) {
    old = m.jump_to(epoch, first);
  } else if (m.epoch == epoch) {
    old = m.jump_to(epoch, m.position);
  }
  m.told_order->forget_before(m.epoch);
  return {};
}

void Loader::expect_order_of(std::uint64_t samples) {
  machine_->told_order->expect_size(samples);
}

std::uint64_t Loader::next_epoch() const {
  const Machine& m = *machine_;
  const MutexLock lock(m.mutex);
  return m.has_delivered && !m.has_ended ? m.epoch + 1 : m.epoch;
}

}  // namespace leat
