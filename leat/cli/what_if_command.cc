// leat what-if REPORT    What would change a training that leat profile has
// looked at, and by how much.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "leat/cli/commands.h"
#include "leat/cli/profile_page.h"
#include "leat/cli/profile_report.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

struct WhatIfFlags {
  std::string report;
  std::string html;
  std::vector<std::string> with;
  bool is_json = false;
};

Result<void> run_what_if(const WhatIfFlags& flags, CommandContext& context) {
  LEAT_TRY(nlohmann::ordered_json report, read_profile_report(flags.report));
  LEAT_TRY(const MeasuredStep measured, measured_step(report));
  LEAT_TRY(const StepModel model, StepModel::of(measured));
  report["what_if"] = what_if_json(model);
  if (!flags.with.empty()) {
    LEAT_TRY(report["what_if"]["asked"], asked_json(model, flags.with));
  }
  if (!flags.html.empty()) {
    LEAT_TRY_VOID(write_text(flags.html, profile_page(report)));
  }
  if (flags.is_json) {
    context.out << report["what_if"].dump() << '\n';
  } else {
    print_what_if(report["what_if"], context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_what_if(CLI::App& app) {
  auto flags = std::make_shared<WhatIfFlags>();
  app.add_option("REPORT", flags->report, "the output of leat profile --json")
      ->required();
  app.add_option("--with", flags->with,
                 "a step with several things otherwise at once: cached=0.5 "
                 "cores=2 latency=0.1; load_ahead, workers, bandwidth, "
                 "accelerator, devices and nodes likewise")
      ->expected(1, -1);
  app.add_option("--html", flags->html, "also write a page to look at");
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n  leat profile --json -- python train.py > report.json\n"
      "  leat what-if report.json --with cached=0.5 cores=2");
  return
      [flags](CommandContext& context) { return run_what_if(*flags, context); };
}

}  // namespace

const Command kWhatIfCommand{
    .name = "what-if",
    .summary = "predict the effect of changes on a profiled training",
    .add = &add_what_if,
};

}  // namespace leat
