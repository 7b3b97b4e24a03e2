#include "leat/engine/order_log/stretches.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>

#include "leat/base/errors.h"

namespace leat {

std::string to_string(OrderPlace place) {
  return fmt::format("position {} of epoch {}", place.at, place.epoch);
}

bool follows(OrderPlace end, OrderPlace next) {
  return next == end || (next.epoch > end.epoch && next.at == 0);
}

Result<void> OrderStretches::read(const std::vector<std::string>& files,
                                  const HearOrderBytes& progress) {
  if (files.empty()) {
    return invalid("there is no order log");
  }
  for (const std::string& file : files) {
    LEAT_TRY_VOID(read_log(file, progress));
  }
  check_alike();
  make_stretches();
  cut_stretches();
  return {};
}

Result<void> OrderStretches::read_log(const std::string& path,
                                      const HearOrderBytes& progress) {
  LEAT_TRY(const std::unique_ptr<OrderLogReader> log,
           OrderLogReader::open(path));
  paths_.push_back(path);
  heads_.push_back(log->head());
  const std::uint64_t first_stint = stints_.size();
  while (true) {
    const std::uint64_t offset = log->offset();
    LEAT_TRY(const std::optional<OrderLogEntry> entry, log->next());
    if (!entry) break;
    if (progress) progress(log->offset() - offset);
    if (const auto* batch = std::get_if<OrderLogBatch>(&*entry)) {
      add_batch(*batch, offset, first_stint);
    }
  }
  if (log->is_cut_off()) {
    notes_.push_back(fmt::format(
        "{} ends within an entry: its process was killed while it wrote",
        path));
  }
  return {};
}

void OrderStretches::add_batch(const OrderLogBatch& batch, std::uint64_t offset,
                               std::uint64_t first_stint) {
  const OrderPlace start{batch.epoch, batch.from};
  const OrderPlace end{batch.epoch, batch.to};
  if (batch.starts || stints_.size() == first_stint) {
    stints_.push_back({.head = &heads_.back(),
                       .path = &paths_.back(),
                       .offset = offset,
                       .number = stints_.size() - first_stint,
                       .start = start,
                       .end = end});
    return;
  }
  OrderStint& stint = stints_.back();
  if (!follows(stint.end, start) && !fault_) {
    fault_ = fmt::format(
        "rank {} {} {} to {} of epoch {} where {} came next ({})",
        stint.head->rank.rank,
        start < stint.end ? "delivered again positions"
                          : "went on with positions",
        batch.from, batch.to, batch.epoch, to_string(stint.end), *stint.path);
  }
  stint.end = end;
}

/// One run has one order; its data may change between epochs.
void OrderStretches::check_alike() {
  const auto order_of = [](const OrderLogHead& head) {
    return fmt::format("{} shuffle in windows of {} with seed {}", head.shuffle,
                       head.shuffle_window, head.seed);
  };
  for (std::size_t i = 1; i < heads_.size() && !fault_; ++i) {
    if (order_of(heads_[i]) == order_of(heads_[0])) continue;
    fault_ = fmt::format(
        "{} is of a {}, and {} of a {}: these are not logs of "
        "one run",
        paths_[0], order_of(heads_[0]), paths_[i], order_of(heads_[i]));
  }
}

void OrderStretches::make_stretches() {
  std::map<Key, std::vector<const OrderStint*>> alike;
  for (const OrderStint& stint : stints_) {
    alike[{stint.head->rank.world_size, stint.start}].push_back(&stint);
  }
  for (const auto& [key, stints] : alike) add_stretches(key, stints);
  std::ranges::stable_sort(stretches_, {}, [](const OrderStretch& stretch) {
    return std::tuple(stretch.opened_at, stretch.number, stretch.start);
  });
}

// The last stints of all ranks belong together, and so do those before them:
// an attempt that was killed early may have left batches of some ranks only.
void OrderStretches::add_stretches(
    const Key& key, const std::vector<const OrderStint*>& stints) {
  std::map<std::uint32_t, std::vector<const OrderStint*>> by_rank;
  for (const OrderStint* stint : stints) {
    by_rank[stint->head->rank.rank].push_back(stint);
  }
  std::vector<OrderStretch> stretches;
  for (auto& [rank, own] : by_rank) {
    std::ranges::stable_sort(own, std::greater(), [](const OrderStint* stint) {
      return std::pair(stint->head->opened_at, stint->number);
    });
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (i == stretches.size()) {
        stretches.push_back({.world_size = key.first, .start = key.second});
      }
      OrderStretch& stretch = stretches[i];
      stretch.end = std::max(stretch.end, own[i]->end);
      stretch.opened_at = std::max(stretch.opened_at, own[i]->head->opened_at);
      stretch.number = std::max(stretch.number, own[i]->number);
      // A head may name any number of ranks, so room follows from stints.
      stretch.stints.resize(
          std::max<std::size_t>(stretch.stints.size(), rank + 1));
      stretch.stints[rank] = own[i];
    }
  }
  std::ranges::move(stretches, std::back_inserter(stretches_));
}

void OrderStretches::cut_stretches() {
  std::optional<OrderPlace> cut;
  for (auto stretch = stretches_.rbegin(); stretch != stretches_.rend();
       ++stretch) {
    stretch->cut = cut;
    if (cut && stretch->end > *cut) {
      notes_.push_back(fmt::format(
          "training went back to {} from {}: what came again counts once",
          to_string(*cut), to_string(stretch->end)));
    }
    if (!cut || stretch->start < *cut) cut = stretch->start;
  }
  std::erase_if(stretches_, [](const OrderStretch& stretch) {
    return stretch.cut && stretch.start >= *stretch.cut;
  });
}

}  // namespace leat
