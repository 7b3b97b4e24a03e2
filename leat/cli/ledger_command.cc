// leat ledger REPORT...    The costs of runs side by side; the appendix of a
// paper.

#include <memory>
#include <ostream>
#include <vector>

#include "leat/base/errors.h"
#include "leat/cli/commands.h"
#include "leat/cli/ledger.h"
#include "leat/cli/ledger_appendix.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostReport = 64 << 20;
constexpr std::size_t kMostReports = 64;

struct AppendixFlags {
  std::vector<std::string> reports;
  LedgerFlags energy;
  std::string latex;
  std::string html;
  bool is_json = false;
};

/// Adds the CO2 of a run to a ledger that has its energy. The
/// flags name the grid.
void emit(const Carbon& carbon, Json& ledger) {
  if (carbon.region.empty() || !ledger.contains("kwh")) return;
  const auto told = [&](const char* key) {
    return ledger.contains(key) ? ledger[key].get<double>() : 0.0;
  };
  constexpr double kDay = 24 * 3600;
  const bool has_hours = ledger.contains("began");
  const double grams = mean_grams_per_kwh(carbon, told("began"),
                                          has_hours ? told("seconds") : kDay);
  ledger["grid"] = carbon.region;
  ledger["grams_per_kwh"] = grams;
  ledger["co2_grams"] = told("kwh") * grams;
  ledger["carbon_source"] = carbon.source;
}

Result<void> run_ledger(const AppendixFlags& flags, CommandContext& context) {
  if (flags.reports.size() > kMostReports) {
    return invalid("{} reports: at most {} stand side by side",
                   flags.reports.size(), kMostReports);
  }
  LEAT_TRY(const Carbon carbon, flags.energy.carbon());
  std::vector<NamedLedger> runs;
  for (const std::string& path : flags.reports) {
    LEAT_TRY(const std::string text, read_text(path, kMostReport));
    LEAT_TRY(NamedLedger run, ledger_in(text, path));
    emit(carbon, run.ledger);
    runs.push_back(std::move(run));
  }
  if (!flags.latex.empty()) {
    LEAT_TRY_VOID(write_text(flags.latex, ledger_latex(runs)));
  }
  if (!flags.html.empty()) {
    LEAT_TRY_VOID(write_text(flags.html, ledger_html(runs)));
  }
  if (!flags.is_json) {
    context.out << ledger_text(runs);
    return {};
  }
  Json told = {{"runs", Json::array()}, {"note", ledger_note(runs)}};
  for (const NamedLedger& run : runs) {
    told["runs"].push_back({{"name", run.name}, {"ledger", run.ledger}});
  }
  context.out << told.dump(-1, ' ', false, Json::error_handler_t::replace)
              << '\n';
  return {};
}

std::function<Result<void>(CommandContext&)> add_ledger(CLI::App& app) {
  auto flags = std::make_shared<AppendixFlags>();
  app.add_option("REPORT", flags->reports,
                 "outputs of leat bench --json or leat profile --json, or "
                 "loader.ledger() as JSON; the first is what others are "
                 "compared with")
      ->required();
  flags->energy.add_grid_to(app);
  app.add_option("--latex", flags->latex, "also write a LaTeX table");
  app.add_option("--html", flags->html, "also write a page");
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n"
      "  leat ledger before.json after.json --grid eu-west-1 --latex "
      "appendix.tex");
  return
      [flags](CommandContext& context) { return run_ledger(*flags, context); };
}

}  // namespace

const Command kLedgerCommand{
    .name = "ledger",
    .summary = "compare what runs cost; write the appendix of a paper",
    .add = &add_ledger,
};

}  // namespace leat
