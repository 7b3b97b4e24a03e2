#include "leat/plan/drawn_order.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/errors.h"

namespace leat {
namespace {

/// Keeps draws apart from the keys of permutations.
constexpr std::uint64_t kDrawSalt = 0x77656967687473ULL;

/// The numbers that a position draws with are mixed from its place, so any
/// rank of any world can draw any position by itself.
class WeightedEpoch final : public DrawnEpoch {
 public:
  WeightedEpoch(std::shared_ptr<const AliasTable> table, std::uint64_t key,
                std::uint64_t size)
      : table_(std::move(table)), key_(key), size_(size) {}

  std::uint64_t size() const override { return size_; }
  SampleId at(std::uint64_t position) const override {
    return SampleId{table_->draw(mix64(key_ ^ mix64(2 * position)),
                                 mix64(key_ ^ mix64(2 * position + 1)))};
  }

 private:
  std::shared_ptr<const AliasTable> table_;
  std::uint64_t key_;
  std::uint64_t size_;
};

class ToldEpoch final : public DrawnEpoch {
 public:
  explicit ToldEpoch(GivenEpoch given)
      : first_(given.first), samples_(std::move(given.samples)) {
    if (given.ends.empty()) return;
    rows_ = {.ends = std::make_shared<const std::vector<std::uint64_t>>(
                 std::move(given.ends)),
             .of_a_step = given.rows_of_a_step};
    if (!given.dealt) return;
    rows_.dealt = std::make_shared<const DealtSteps>(*std::move(given.dealt));
  }

  std::uint64_t size() const override { return first_ + samples_.size(); }
  std::uint64_t first() const override { return first_; }
  SampleId at(std::uint64_t position) const override {
    LEAT_CHECK(position >= first_);
    return SampleId{samples_[position - first_]};
  }
  StepRows rows() const override { return rows_; }

 private:
  std::uint64_t first_;
  std::vector<std::uint64_t> samples_;
  StepRows rows_;
};

Result<void> check_ends(const GivenEpoch& given) {
  if (given.ends.empty()) return {};
  if (given.rows_of_a_step == 0) return invalid("a step has no rows");
  std::uint64_t before = given.first;
  for (std::size_t step = 0; step < given.ends.size(); ++step) {
    if (given.ends[step] <= before) {
      return invalid("batch {} has no samples", step);
    }
    before = given.ends[step];
  }
  if (before == given.first + given.samples.size()) return {};
  return invalid("the batches have another number of samples than the order");
}

}  // namespace

std::uint64_t GivenEpoch::largest_step() const {
  std::uint64_t largest = 0;
  std::uint64_t before = first;
  for (std::size_t row = 0; row < ends.size(); row += rows_of_a_step) {
    const std::uint64_t end =
        ends[std::min<std::size_t>(row + rows_of_a_step, ends.size()) - 1];
    largest = std::max(largest, end - before);
    before = end;
  }
  return largest;
}

std::uint32_t DrawnEpoch::place_of(std::uint64_t /*position*/) const {
  LEAT_CHECK(false);
  return 0;
}

std::optional<std::uint64_t> DrawnEpoch::position_near(
    SampleId /*sample*/, std::uint64_t /*position*/) const {
  LEAT_CHECK(false);
  return std::nullopt;
}

Result<std::shared_ptr<const WeightedOrder>> WeightedOrder::make(
    std::span<const double> weights, std::uint64_t seed, std::uint64_t size) {
  if (size == 0) {
    return invalid("samples_per_epoch=0; an epoch has at least one sample");
  }
  LEAT_TRY(AliasTable table, AliasTable::make(weights));
  return std::shared_ptr<const WeightedOrder>(new WeightedOrder(
      std::make_shared<const AliasTable>(std::move(table)), seed, size));
}

std::shared_ptr<const DrawnEpoch> WeightedOrder::epoch(
    std::uint64_t epoch) const {
  const std::uint64_t key = mix64(mix64(seed_ ^ kDrawSalt) + mix64(epoch));
  return std::make_shared<const WeightedEpoch>(table_, key, size_);
}

Result<void> GivenOrder::give(std::uint64_t epoch, GivenEpoch given) {
  for (std::size_t i = 0; i < given.samples.size(); ++i) {
    if (given.samples[i] < dataset_samples_) continue;
    return invalid(
        "the sampler gave sample {} at position {}, and the dataset has {}",
        given.samples[i], given.first + i, dataset_samples_);
  }
  LEAT_TRY_VOID(check_ends(given));
  if (given.dealt) LEAT_TRY_VOID(given.dealt->check());
  Hasher128 hasher;
  for (const std::uint64_t sample : given.samples) hasher.update(sample);
  auto told = std::make_shared<const ToldEpoch>(std::move(given));
  const MutexLock lock(mutex_);
  digests_.insert_or_assign(epoch, hasher.digest());
  epochs_.insert_or_assign(epoch, std::move(told));
  return {};
}

void GivenOrder::expect_size(std::uint64_t size) {
  const MutexLock lock(mutex_);
  expected_ = size;
}

void GivenOrder::forget_before(std::uint64_t epoch) {
  const MutexLock lock(mutex_);
  epochs_.erase(epochs_.begin(), epochs_.lower_bound(epoch));
  digests_.erase(digests_.begin(), digests_.lower_bound(epoch));
}

std::shared_ptr<const DrawnEpoch> GivenOrder::epoch(std::uint64_t epoch) const {
  const MutexLock lock(mutex_);
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() ? nullptr : found->second;
}

std::optional<std::uint64_t> GivenOrder::size(std::uint64_t epoch) const {
  const MutexLock lock(mutex_);
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() ? expected_
                                : std::optional(found->second->size());
}

std::optional<Hash128> GivenOrder::digest(std::uint64_t epoch) const {
  const MutexLock lock(mutex_);
  const auto found = digests_.find(epoch);
  return found == digests_.end() ? std::nullopt : std::optional(found->second);
}

// A counting sort by sample: positions come in their order.
DrawnPositions::DrawnPositions(const DrawnEpoch& epoch,
                               std::uint64_t dataset_samples)
    : begin_(dataset_samples + 1) {
  const std::uint64_t first = epoch.first();
  std::vector<std::uint64_t> drawn;
  drawn.reserve(epoch.size() - first);
  for (std::uint64_t p = first; p < epoch.size(); ++p) {
    drawn.push_back(epoch.at(p).value);
    ++begin_[drawn.back() + 1];
  }
  for (std::uint64_t i = 0; i < dataset_samples; ++i)
    begin_[i + 1] += begin_[i];
  positions_.resize(drawn.size());
  std::vector<std::uint64_t> next(begin_.begin(), begin_.end() - 1);
  for (std::uint64_t i = 0; i < drawn.size(); ++i) {
    positions_[next[drawn[i]]++] = first + i;
  }
}

}  // namespace leat
