// The ledgers of runs side by side, for a terminal or as the appendix of a
// paper: docs/reference/ledger.md.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// A run's ledger and the name that stands over its column.
struct NamedLedger {
  std::string name;
  nlohmann::ordered_json ledger;
};

/// Finds the ledger in the text of a report: of `leat bench`, `leat profile`,
/// or what loader.ledger() returned. `name` names the text in messages.
///
/// Errors:
///   kInvalidArgument  no JSON, no ledger, or a value that is not a number
Result<NamedLedger> ledger_in(const std::string& text, const std::string& name);

/// One line of the table: a quantity of each run, and of each run after the
/// first how much of the first one's it is.
struct LedgerLine {
  std::string label;
  std::vector<std::string> values;  ///< A dash where a run does not tell.
  std::vector<std::string> ratios;  ///< Empty for words.
};

/// The lines that at least one run can fill in.
std::vector<LedgerLine> ledger_lines(std::span<const NamedLedger> runs);

/// The nature of the figures: measured or modelled, whose prices, whose grams.
std::string ledger_note(std::span<const NamedLedger> runs);

std::string ledger_text(std::span<const NamedLedger> runs);
/// A table environment that needs no package.
std::string ledger_latex(std::span<const NamedLedger> runs);
/// A page by itself.
std::string ledger_html(std::span<const NamedLedger> runs);

}  // namespace leat
