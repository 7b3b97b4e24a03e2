// Options of commands that say what a run cost: docs/reference/ledger.md.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "leat/base/result.h"
#include "leat/engine/ledger.h"

namespace leat {

/// The prices that a run is counted at.
struct LedgerFlags {
  std::string provider;     // Empty: the provider of the data, else "s3".
  std::string prices_file;  // Empty: those that are shipped.
  double node_per_hour = 0;
  bool is_behind_nat = false;
  std::string grid;         // Feeds the machine. Empty: not told.
  std::string carbon_file;  // Empty: carbon.toml, which is shipped.
  PowerModel power = {};

  void add_to(CLI::App& app);
  /// The grid alone; and with it the watts of what is not measured.
  void add_grid_to(CLI::App& app);
  void add_energy_to(CLI::App& app);
  Result<Carbon> carbon() const;
  /// The prices for data that `served_by` serves, if they are known. To be
  /// asked before a long run, too.
  ///
  /// Errors:
  ///   kInvalidArgument  no such provider; a file that is wrong
  ///   kNotFound, kUnavailable  as read_text()
  Result<Pricing> pricing(const std::string& served_by = {}) const;
};

}  // namespace leat
