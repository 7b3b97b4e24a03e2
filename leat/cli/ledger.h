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
  std::string prices_file;  // Empty: those that are shipped.
  double node_per_hour = 0;
  bool is_behind_nat = false;

  void add_to(CLI::App& app);
  /// To be asked before a long run, too.
  ///
  /// Errors:
  ///   kInvalidArgument  no such provider; a file that is wrong
  ///   kNotFound, kUnavailable  as read_text()
  Result<Prices> prices() const;
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
