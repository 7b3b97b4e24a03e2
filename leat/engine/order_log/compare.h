// Proves that two runs delivered one stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/hash.h"
#include "leat/base/result.h"
#include "leat/engine/order_log/once.h"
#include "leat/engine/order_log/run.h"

namespace leat {

/// The names and logs of a run.
struct OrderRunFiles {
  std::string name;
  std::vector<std::string> files;
};

struct OrderVerdict {
  /// The first difference, or what is wrong with one of the runs. Nullopt: the
  /// proof holds.
  std::optional<std::string> finding;
  std::vector<OrderEpoch> epochs;  ///< The first run's.
  std::string data;                ///< The digest of its data.
  Hash128 digest;                  ///< OnceCheck::digest().
  bool is_order_of_ranks = false;  ///< The order within ranks is the same, too.
  struct Run {
    std::string name;
    std::size_t logs = 0;
    std::vector<std::uint32_t> world_sizes;
    std::vector<std::string> notes;
  };
  std::vector<Run> runs;
};

/// Checks that each sample of a run came once, and that its steps are whole.
/// Reads each log twice; `progress` hears of both.
///
/// Errors: as OrderRun; kCancelled
Result<OrderVerdict> verify_run(const OrderRunFiles& run,
                                const std::stop_token& stop,
                                const HearOrderBytes& progress = {});

/// Checks also that another run delivered the same samples in each step; with
/// `is_strict`, where world sizes agree, in the same rows of the same ranks.
///
/// Holds a step of each run; if their steps differ in size, as many as take to
/// end at one position.
///
/// Errors: as above; kResourceExhausted: steps end at one position too rarely
Result<OrderVerdict> compare_runs(const OrderRunFiles& a,
                                  const OrderRunFiles& b, bool is_strict,
                                  const std::stop_token& stop,
                                  const HearOrderBytes& progress = {});

}  // namespace leat
