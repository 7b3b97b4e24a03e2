// What a run asked for and what it cost: docs/reference/ledger.md.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "leat/base/result.h"
#include "leat/cli/prices.h"

namespace leat {

/// Whose prices a run is counted at.
struct LedgerFlags {
  std::string provider = "s3";
  double node_per_hour = 0;
  bool is_behind_nat = false;

  void add_to(CLI::App& app);
  /// kInvalidArgument if there is no such provider: said before a long run.
  Result<void> check() const;
};

struct LedgerCounts {
  Usage usage;
  /// Of all accelerators: time in which they stood still for data.
  double stalled_accelerator_seconds = 0;
  std::uint32_t accelerators_a_node = 1;
  /// Of the machine's processors and accelerators, whoever used them.
  std::optional<double> processor_joules;
  std::optional<double> accelerator_joules;
};

/// Requests, bytes, stalled accelerator-seconds and dollars; energy where it
/// is known.
///
/// Errors:
///   kInvalidArgument  no provider of this name
Result<nlohmann::ordered_json> ledger_json(const LedgerCounts& counts,
                                           const LedgerFlags& flags);

}  // namespace leat
