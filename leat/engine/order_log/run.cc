#include "leat/engine/order_log/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leat {
namespace {

OrderPlace place_of(const OrderLogEntry& entry) {
  if (const auto* batch = std::get_if<OrderLogBatch>(&entry)) {
    return {batch->epoch, batch->from};
  }
  const auto& end = std::get<OrderLogEnd>(entry);
  return {end.epoch, end.at};
}

/// The batch of a rank that begins at `place`; null: it has none.
const OrderLogBatch* batch_at(const std::optional<OrderLogEntry>& entry,
                              OrderPlace place) {
  if (!entry) return nullptr;
  const auto* batch = std::get_if<OrderLogBatch>(&*entry);
  return batch != nullptr && place_of(*entry) == place ? batch : nullptr;
}

/// Null if the entry is not an end.
const OrderLogEnd* end_in(const std::optional<OrderLogEntry>& entry) {
  return entry ? std::get_if<OrderLogEnd>(&*entry) : nullptr;
}

std::uint64_t samples_in(const OrderStep& step) {
  std::uint64_t samples = 0;
  for (const OrderLogBatch& rank : step.ranks) {
    samples += rank.ids.size() - rank.padding.size();
  }
  return samples;
}

std::string unfilled(const OrderStep& step) {
  return fmt::format("{} has {} samples, and {} came", to_string(step),
                     step.to - step.from, samples_in(step));
}

std::string ends_elsewhere(const OrderStep& step, const OrderLogBatch& other) {
  return fmt::format("{} ends at {} on rank {} of {}", to_string(step),
                     other.to, step.head->rank.rank,
                     step.head->rank.world_size);
}

}  // namespace

std::string to_string(const OrderStep& step) {
  return fmt::format("step {} of epoch {} (positions {} to {})", step.number,
                     step.epoch, step.from, step.to);
}

Result<std::unique_ptr<OrderRun>> OrderRun::open(
    const std::vector<std::string>& files, HearOrderBytes progress) {
  std::unique_ptr<OrderRun> run(new OrderRun());
  LEAT_TRY_VOID(run->stretches_.read(files, progress));
  run->progress_ = std::move(progress);
  run->notes_ = run->stretches_.notes();
  return run;
}

std::vector<std::uint32_t> OrderRun::world_sizes() const {
  std::vector<std::uint32_t> sizes;
  for (const OrderStretch& stretch : stretches_.stretches()) {
    if (sizes.empty() || sizes.back() != stretch.world_size) {
      sizes.push_back(stretch.world_size);
    }
  }
  return sizes;
}

OrderEvent OrderRun::fail(std::string what) {
  has_failed_ = true;
  return OrderFault{std::move(what)};
}

Result<std::optional<OrderEvent>> OrderRun::next() {
  if (has_failed_) return std::nullopt;
  if (stretches_.fault()) return fail(*stretches_.fault());
  while (true) {
    const std::optional<OrderPlace> step = first_step();
    const std::optional<std::uint64_t> end = first_end();
    std::optional<OrderEvent> event;
    if (end && (!step || *end < step->epoch)) {
      LEAT_TRY(event, take_end(*end));
    } else if (step) {
      LEAT_TRY(event, take_step(*step));
    } else if (has_more_stretches()) {
      LEAT_TRY_VOID(open_stretch());
    } else {
      return std::nullopt;
    }
    if (event) return event;
  }
}

Result<void> OrderRun::open_stretch() {
  const OrderStretch& stretch = stretches_.stretches()[stretch_++];
  cursors_.clear();
  cut_ = stretch.cut;
  for (const OrderStint* stint : stretch.stints) {
    Cursor& cursor = cursors_.emplace_back();
    if (stint == nullptr) continue;
    cursor.head = stint->head;
    LEAT_TRY(cursor.reader, OrderLogReader::open(*stint->path));
    LEAT_TRY_VOID(cursor.reader->seek(stint->offset));
    LEAT_TRY(cursor.entry, cursor.reader->next());
    if (progress_) progress_(cursor.reader->offset() - stint->offset);
  }
  cursors_.resize(std::max<std::size_t>(cursors_.size(), stretch.world_size));
  return {};
}

Result<void> OrderRun::advance(Cursor& cursor) {
  const std::uint64_t offset = cursor.reader->offset();
  LEAT_TRY(cursor.entry, cursor.reader->next());
  if (!cursor.entry) return {};
  if (progress_) progress_(cursor.reader->offset() - offset);
  const auto* batch = std::get_if<OrderLogBatch>(&*cursor.entry);
  const bool is_next_stint = batch != nullptr && batch->starts;
  if (is_next_stint || (cut_ && place_of(*cursor.entry) >= *cut_)) {
    cursor.entry.reset();
  }
  return {};
}

std::optional<OrderPlace> OrderRun::first_step() const {
  std::optional<OrderPlace> first;
  for (const Cursor& cursor : cursors_) {
    if (!cursor.entry || end_in(cursor.entry) != nullptr) continue;
    const OrderPlace place = place_of(*cursor.entry);
    if (!first || place < *first) first = place;
  }
  return first;
}

std::optional<std::uint64_t> OrderRun::first_end() const {
  std::optional<std::uint64_t> first;
  for (const Cursor& cursor : cursors_) {
    const OrderLogEnd* const end = end_in(cursor.entry);
    if (end != nullptr && (!first || end->epoch < *first)) first = end->epoch;
  }
  return first;
}

Result<std::optional<OrderEvent>> OrderRun::take_step(OrderPlace place) {
  if (at_ && !follows(*at_, place)) {
    return fail(
        fmt::format("no log has what comes after {}: the next step "
                    "begins at {}",
                    to_string(*at_), to_string(place)));
  }
  if (!at_ || at_->epoch != place.epoch) number_ = 0;
  OrderStep step{.epoch = place.epoch, .number = number_, .from = place.at};
  step.ranks.resize(cursors_.size());
  for (const Cursor& cursor : cursors_) {
    const OrderLogBatch* const batch = batch_at(cursor.entry, place);
    if (batch == nullptr) continue;
    if (step.head == nullptr) step.to = batch->to;
    step.head = cursor.head;
    if (step.to != batch->to) return fail(ends_elsewhere(step, *batch));
  }
  for (std::size_t rank = 0; rank < cursors_.size(); ++rank) {
    Cursor& cursor = cursors_[rank];
    if (batch_at(cursor.entry, place) != nullptr) {
      step.ranks[rank] = std::get<OrderLogBatch>(*std::move(cursor.entry));
      continue;
    }
    if (!cursor.entry) return end_early(step, rank);
    const auto* end = std::get_if<OrderLogEnd>(&*cursor.entry);
    if (end == nullptr || end->epoch != place.epoch) {
      return fail(fmt::format("rank {} left out {}", rank, to_string(step)));
    }
  }
  for (std::size_t rank = 0; rank < cursors_.size(); ++rank) {
    if (!step.ranks[rank].ids.empty()) LEAT_TRY_VOID(advance(cursors_[rank]));
  }
  if (samples_in(step) != step.to - step.from) return fail(unfilled(step));
  at_ = {step.epoch, step.to};
  ++number_;
  return std::optional<OrderEvent>(std::move(step));
}

// A killed run leaves some ranks a step ahead of others. More is a fault.
Result<std::optional<OrderEvent>> OrderRun::end_early(const OrderStep& step,
                                                      std::size_t rank) {
  for (std::size_t r = 0; r < cursors_.size(); ++r) {
    Cursor& cursor = cursors_[r];
    const bool had_step =
        r < rank ? !step.ranks[r].ids.empty()
                 : cursor.entry && batch_at(cursor.entry,
                                            {step.epoch, step.from}) != nullptr;
    if (!had_step) continue;
    LEAT_TRY_VOID(advance(cursor));
    if (cursor.entry && std::holds_alternative<OrderLogBatch>(*cursor.entry)) {
      return fail(
          fmt::format("rank {} of {} has no log of {}, and rank {} went "
                      "on behind it",
                      rank, cursors_.size(), to_string(step), r));
    }
  }
  notes_.push_back(
      fmt::format("{} came on some ranks only, when the run ended: it is left "
                  "out",
                  to_string(step)));
  cursors_.clear();
  return std::nullopt;
}

// One rank that saw the end is enough: the last step is there from all ranks.
Result<std::optional<OrderEvent>> OrderRun::take_end(std::uint64_t epoch) {
  std::optional<OrderEpochEnd> end;
  for (Cursor& cursor : cursors_) {
    const OrderLogEnd* const own = end_in(cursor.entry);
    if (own == nullptr || own->epoch != epoch) continue;
    const OrderPlace at{own->epoch, own->at};
    if (at_ == at) {
      end =
          OrderEpochEnd{.at = at, .samples = own->samples, .head = cursor.head};
    }
    LEAT_TRY_VOID(advance(cursor));
  }
  if (!end) return std::nullopt;
  return std::optional<OrderEvent>(*std::move(end));
}

}  // namespace leat
