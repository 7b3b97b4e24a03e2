#include "leat/engine/order_log/once.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace leat {
namespace {

/// The words of LoaderState.
bool is_drawn(const OrderLogHead& head) { return head.shuffle == "drawn"; }

/// The same for any order of the step's rows, and any split among ranks.
Hash128 digest_of(const OrderStep& step) {
  std::uint64_t sum = 0;
  for (const OrderLogBatch& rank : step.ranks) {
    for (const SampleId id : rank.ids) sum += mix64(id.value);
  }
  Hasher128 hasher;
  for (const std::uint64_t word : {step.epoch, step.from, step.to, sum}) {
    hasher.update(word);
  }
  return hasher.digest();
}

}  // namespace

bool SampleSet::insert(SampleId sample) {
  std::unique_ptr<Page>& page = pages_[sample.value / kPageBits];
  if (page == nullptr) page = std::make_unique<Page>(Page{});
  const std::uint64_t at = sample.value % kPageBits;
  std::uint64_t& word = (*page)[at / 64];
  const std::uint64_t bit = std::uint64_t{1} << (at % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  ++size_;
  return true;
}

std::uint64_t SampleSet::first_missing(std::uint64_t samples) const {
  for (std::uint64_t first = 0; first < samples; first += kPageBits) {
    const auto page = pages_.find(first / kPageBits);
    if (page == pages_.end()) return first;
    for (std::uint64_t word = 0; word < kPageBits / 64; ++word) {
      const auto ones =
          static_cast<std::uint64_t>(std::countr_one((*page->second)[word]));
      if (ones < 64) return std::min(samples, first + word * 64 + ones);
    }
  }
  return samples;
}

void SampleSet::clear() {
  pages_.clear();
  size_ = 0;
}

std::string to_string(const OrderEpoch& epoch) {
  std::string text =
      fmt::format("{} steps, {} samples: ", epoch.steps, epoch.samples);
  if (epoch.is_drawn) {
    text += fmt::format("{} different ones, as drawn", epoch.distinct);
  } else if (epoch.substitutes != 0) {
    text += fmt::format("{} different ones, since {} replace bad ones",
                        epoch.distinct, epoch.substitutes);
  } else if (epoch.is_whole && epoch.distinct == epoch.of_samples) {
    text += fmt::format("each of {} once", epoch.of_samples);
  } else if (epoch.is_whole && epoch.of_samples != 0) {
    text += fmt::format("none twice, and the tail of {} is left out",
                        epoch.of_samples - epoch.distinct);
  } else {
    text += "none twice";
  }
  if (epoch.padding != 0) text += fmt::format("; {} pad", epoch.padding);
  if (!epoch.is_whole) {
    text += fmt::format("; positions {} to {} alone", epoch.from, epoch.to);
  }
  return text;
}

void OnceCheck::begin(const OrderStep& step) {
  if (epochs_.empty() || epochs_.back().epoch != step.epoch) {
    seen_.clear();
    epochs_.push_back({.epoch = step.epoch,
                       .from = step.from,
                       .is_drawn = is_drawn(*step.head)});
  }
  OrderEpoch& epoch = epochs_.back();
  epoch.to = step.to;
  epoch.of_samples = step.head->samples;
  ++epoch.steps;
  epoch.largest_step = std::max(epoch.largest_step, step.to - step.from);
  const Hash128 own = digest_of(step);
  Hasher128 hasher;
  for (const std::uint64_t word :
       {digest_.high, digest_.low, own.high, own.low}) {
    hasher.update(word);
  }
  digest_ = hasher.digest();
}

std::optional<std::uint64_t> OnceCheck::count(const OrderLogBatch& rank) {
  OrderEpoch& epoch = epochs_.back();
  epoch.padding += rank.padding.size();
  epoch.substitutes += rank.substitutes.size();
  epoch.samples += rank.ids.size() - rank.padding.size();
  auto padding = rank.padding.begin();
  auto substitute = rank.substitutes.begin();
  for (std::uint64_t row = 0; row < rank.ids.size(); ++row) {
    const bool pads = padding != rank.padding.end() && *padding == row;
    const bool replaces =
        substitute != rank.substitutes.end() && *substitute == row;
    if (pads) ++padding;
    if (replaces) ++substitute;
    // The sample that replaces a bad one has a row of its own.
    if (pads || replaces || seen_.insert(rank.ids[row])) continue;
    if (!epoch.is_drawn) return row;
  }
  return std::nullopt;
}

std::optional<std::string> OnceCheck::take(const OrderStep& step) {
  begin(step);
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    const std::optional<std::uint64_t> again = count(step.ranks[rank]);
    if (!again) continue;
    return fmt::format(
        "sample {} came twice in epoch {}: again on rank {}, row {}, in {}",
        step.ranks[rank].ids[*again].value, step.epoch, rank, *again,
        to_string(step));
  }
  epochs_.back().distinct = seen_.size();
  return std::nullopt;
}

std::optional<std::string> OnceCheck::take(const OrderEpochEnd& end) {
  if (epochs_.empty() || epochs_.back().epoch != end.at.epoch) return {};
  OrderEpoch& epoch = epochs_.back();
  if (end.samples != 0) epoch.of_samples = end.samples;
  epoch.is_whole = epoch.from == 0;
  if (!epoch.is_whole || epoch.is_drawn || epoch.of_samples == 0) return {};
  const std::uint64_t came = epoch.distinct + epoch.substitutes;
  const bool may_drop = end.head->tail == "drop";
  const std::uint64_t left_out =
      came < epoch.of_samples ? epoch.of_samples - came : 0;
  if (left_out == 0 || (may_drop && left_out < epoch.largest_step)) {
    return {};
  }
  return fmt::format("{} of {} samples never came in epoch {}: the first is {}",
                     left_out, epoch.of_samples, epoch.epoch,
                     seen_.first_missing(epoch.of_samples));
}

}  // namespace leat
