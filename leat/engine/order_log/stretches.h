// The stretches that the order logs of a run consist of.
//
// A run that was stopped and resumed has several logs of a rank, and may have
// had other numbers of ranks before. A *stint* is what one rank delivered from
// a start to the next one. The stints of all ranks that start at one place,
// with one world size, are a *stretch*. A later stretch replaces what earlier
// ones delivered at and behind its start, for training went back to a
// checkpoint. The times at which logs were opened tell which came later, so the
// clocks of nodes have to agree to less than the time between two starts.
#pragma once
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/engine/order_log/entries.h"
#include "leat/engine/order_log/reader.h"

namespace leat {

/// Called with the bytes of logs that were read since it was called last:
/// often, on the caller's thread. May be empty.
using HearOrderBytes = std::function<void(std::uint64_t)>;

/// A position of an epoch.
struct OrderPlace {
  std::uint64_t epoch = 0;
  std::uint64_t at = 0;
  friend auto operator<=>(OrderPlace, OrderPlace) = default;
};

/// "position 40 of epoch 2".
std::string to_string(OrderPlace place);

/// Whether a step that begins at `next` may follow one that ended at `end`: it
/// is the next of its epoch, or the first of a later one.
bool follows(OrderPlace end, OrderPlace next);

/// The place of one rank's batches from one start to the next.
struct OrderStint {
  const OrderLogHead* head = nullptr;
  const std::string* path = nullptr;
  std::uint64_t offset = 0;  ///< Its first batch is here.
  std::uint64_t number = 0;  ///< In its file.
  OrderPlace start;
  OrderPlace end;
};

struct OrderStretch {
  std::uint32_t world_size = 1;
  OrderPlace start;
  OrderPlace end;  ///< The furthest of any rank.
  std::uint64_t opened_at = 0;
  std::uint64_t number = 0;
  std::vector<const OrderStint*> stints = {};  ///< By rank; null: it has none.
  /// A later stretch starts here, and this one counts up to here.
  std::optional<OrderPlace> cut = std::nullopt;
};

/// The stretches of a run, in the order of time. Stretches of which nothing
/// counts are left out.
///
/// Threads:  one at a time.
/// Lifetime: stretches point into it.
class OrderStretches {
 public:
  /// Reads all logs once. Blocks.
  ///
  /// Errors: as OrderLogReader; kInvalidArgument: no file is given
  Result<void> read(const std::vector<std::string>& files,
                    const HearOrderBytes& progress = {});

  const std::vector<OrderStretch>& stretches() const { return stretches_; }
  std::size_t logs() const { return heads_.size(); }
  /// A rank delivered something twice, or left something out.
  const std::optional<std::string>& fault() const { return fault_; }
  /// Remarks for people: logs that were cut off, steps that came again.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// World size, start.
  using Key = std::pair<std::uint32_t, OrderPlace>;

  Result<void> read_log(const std::string& path,
                        const HearOrderBytes& progress);
  void add_batch(const OrderLogBatch& batch, std::uint64_t offset,
                 std::uint64_t first_stint);
  void check_alike();
  void make_stretches();
  void add_stretches(const Key& key,
                     const std::vector<const OrderStint*>& stints);
  void cut_stretches();

  // Deques, since others point into them.
  std::deque<std::string> paths_;
  std::deque<OrderLogHead> heads_;
  std::deque<OrderStint> stints_;
  std::vector<OrderStretch> stretches_;
  std::optional<std::string> fault_;
  std::vector<std::string> notes_;
};

}  // namespace leat
