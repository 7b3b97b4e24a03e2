// leat docs PAGE    Prints a reference page that is made from the code itself.

#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string>

#include "leat/agent/exposition.h"
#include "leat/cli/commands.h"
#include "leat/metrics/catalog.h"

namespace leat {
namespace {

void print_metrics(std::ostream& out) {
  out << "# Metrics\n\n"
         "Printed by `leat docs metrics`; a test compares. `Loader.metrics()` "
         "holds their values.\n\n"
         "| name | kind | what it counts |\n|---|---|---|\n";
  for (const MetricSpec& metric : kCatalog) {
    out << fmt::format(
        "| `{}` | {} | {} |\n", metric.name,
        metric.kind == MetricKind::kCounter ? "counter" : "gauge", metric.help);
  }
}

std::function<Result<void>(CommandContext&)> add_docs(CLI::App& app) {
  auto page = std::make_shared<std::string>();
  app.add_option("PAGE", *page, "metrics or agent-metrics")
      ->required()
      ->check(CLI::IsMember({"metrics", "agent-metrics"}));
  app.footer("Example:\n  leat docs metrics > docs/reference/metrics.md");
  return [page](CommandContext& context) -> Result<void> {
    if (*page == "metrics") {
      print_metrics(context.out);
    } else {
      context.out << agent_metrics_page();
    }
    return {};
  };
}

}  // namespace

const Command kDocsCommand{
    .name = "docs",
    .summary = "print a reference page",
    .add = &add_docs,
};

}  // namespace leat
