// The order logs of all ranks of a run, as one stream of global steps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/order_log/entries.h"
#include "leat/engine/order_log/reader.h"
#include "leat/engine/order_log/stretches.h"

namespace leat {

/// The samples of one step, over all ranks.
struct OrderStep {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;  ///< In its epoch, as far as there are logs of it.
  std::uint64_t from = 0;    ///< It covers the positions [from, to).
  std::uint64_t to = 0;
  /// By rank. A tail of fewer samples than ranks leaves some without rows.
  std::vector<OrderLogBatch> ranks;
  const OrderLogHead* head = nullptr;  ///< One of a log of this step.
};

/// "step 3 of epoch 0 (positions 24 to 32)".
std::string to_string(const OrderStep& step);

/// An epoch had no more steps.
struct OrderEpochEnd {
  OrderPlace at;
  std::uint64_t samples = 0;  ///< The dataset's; 0: unknown.
  const OrderLogHead* head = nullptr;
};

/// The logs do not make one stream. It is the last event.
struct OrderFault {
  std::string what;
};

using OrderEvent = std::variant<OrderStep, OrderEpochEnd, OrderFault>;

/// Reads the logs of one run. Holds one step at a time.
///
/// Threads: one at a time.
class OrderRun {
 public:
  /// Reads all logs once, to find out where each starts. Blocks, as next(),
  /// which reads them once more. `progress` hears of both.
  ///
  /// Errors: as OrderStretches::read()
  static Result<std::unique_ptr<OrderRun>> open(
      const std::vector<std::string>& files, HearOrderBytes progress = {});

  /// The next event; nullopt at the end. Errors: as OrderLogReader::next()
  Result<std::optional<OrderEvent>> next();

  std::size_t logs() const { return stretches_.logs(); }
  /// The world sizes of the stretches, in order; stretches in a row that have
  /// the same size count as one.
  std::vector<std::uint32_t> world_sizes() const;
  /// Remarks for people. Complete at the end.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// One rank of the stretch that is read.
  struct Cursor {
    const OrderLogHead* head = nullptr;
    std::unique_ptr<OrderLogReader> reader;
    std::optional<OrderLogEntry> entry;  ///< Nullopt: it has ended.
  };

  OrderRun() = default;
  bool has_more_stretches() const {
    return stretch_ < stretches_.stretches().size();
  }
  /// REQUIRES: has_more_stretches().
  Result<void> open_stretch();
  Result<void> advance(Cursor& cursor);
  /// The first step that any rank has; nullopt: none has.
  std::optional<OrderPlace> first_step() const;
  /// The first epoch whose end any rank has next.
  std::optional<std::uint64_t> first_end() const;
  Result<std::optional<OrderEvent>> take_step(OrderPlace place);
  Result<std::optional<OrderEvent>> take_end(std::uint64_t epoch);
  /// From `step` on, `rank` has no batch. Errors: as OrderLogReader::next()
  Result<std::optional<OrderEvent>> end_early(const OrderStep& step,
                                              std::size_t rank);
  OrderEvent fail(std::string what);

  OrderStretches stretches_;
  HearOrderBytes progress_;
  std::vector<std::string> notes_;
  bool has_failed_ = false;
  std::size_t stretch_ = 0;  // The stretch behind the one that is read.
  std::optional<OrderPlace> cut_;
  std::vector<Cursor> cursors_;
  std::optional<OrderPlace> at_;  // The end of the last step.
  std::uint64_t number_ = 0;      // The number of the step behind it.
};

}  // namespace leat
