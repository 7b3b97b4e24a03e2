// leat recommend REPORT --catalog FILE    What a training that was profiled
// would take and cost on machines that can be rented.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "leat/base/errors.h"
#include "leat/cli/commands.h"
#include "leat/cli/machine_list.h"
#include "leat/cli/number_checks.h"
#include "leat/cli/plan_report.h"
#include "leat/cli/profile_page.h"
#include "leat/cli/profile_report.h"
#include "leat/engine/read_text.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

struct RecommendFlags {
  std::string report;
  std::string catalog;
  std::string measured_on;
  std::optional<double> hours;
  std::optional<double> money;
  std::optional<double> steps;
  std::optional<double> gradient_bytes;
  std::optional<double> gradient_buckets;
  double epochs = 1;
  bool has_cache = false;
  std::string html;
  bool is_json = false;
};

constexpr const char* kModel =
    "Leat's own model of one profile; it is an estimate, not a measurement";
/// DistributedDataParallel's default bucket.
constexpr double kBucketBytes = 25 << 20;

double number_in(const Json& report, const char* table, const char* key) {
  const auto found = report.find(table);
  if (found == report.end() || !found->is_object()) return 0;
  const auto value = found->find(key);
  if (value == found->end() || !value->is_number()) return 0;
  return std::max(value->get<double>(), 0.0);
}

/// The machine that the report was made on: named, or the one with its
/// accelerator.
Result<const Machine*> machine_of(const Json& report, const MachineList& list,
                                  const std::string& name) {
  const auto found = report.find("accelerator");
  const std::string accelerator = found != report.end() && found->is_string()
                                      ? found->get<std::string>()
                                      : "";
  for (const Machine& machine : list.machines) {
    if (name.empty() ? machine.accelerator == accelerator
                     : machine.name == name) {
      return &machine;
    }
  }
  if (!name.empty()) {
    return invalid("--on {}: the catalog has no such machine", name);
  }
  return invalid(
      "the report was made {}, and no machine of the catalog has that: name "
      "one that is as fast by --on NAME, or add yours",
      accelerator.empty() ? "without an accelerator"
                          : "on \"" + accelerator + "\"");
}

Result<WholeTraining> training_of(const Json& report, const Machine& machine,
                                  const RecommendFlags& flags) {
  LEAT_TRY(const MeasuredStep step, measured_step(report));
  const auto length = report.find("epoch_batches");
  const bool has_length = length != report.end() && length->is_number();
  if (!flags.steps && !has_length) {
    return invalid(
        "the loader has no length: say how many steps an epoch has, by "
        "--steps");
  }
  WholeTraining training{
      .step = step,
      .measured_on = machine,
      .steps_an_epoch = flags.steps ? *flags.steps : length->get<double>(),
      .epochs = flags.epochs,
      .gradient_bytes = flags.gradient_bytes.value_or(
          number_in(report, "gradients", "bytes")),
      .gradient_buckets = flags.gradient_buckets.value_or(
          number_in(report, "gradients", "buckets")),
      .gets_a_batch = number_in(report, "fetch_a_batch", "gets"),
      .bytes_a_batch = number_in(report, "fetch_a_batch", "bytes"),
      .has_cache = flags.has_cache};
  if (training.gradient_buckets == 0) {
    training.gradient_buckets =
        std::ceil(training.gradient_bytes / kBucketBytes);
  }
  return training;
}

Json offer_json(const Offer& offer, const Machine& machine, bool is_choice) {
  Json told = {{"name", machine.name}, {"count", offer.count}};
  if (!offer.why_not.empty()) {
    told["hours"] = nullptr;
    told["why_not"] = offer.why_not;
    return told;
  }
  const double seconds = offer.step.seconds();
  told.update({{"step_seconds", seconds},
               {"wait_fraction", 1 - offer.step.compute / seconds},
               {"hours", offer.hours},
               {"dollars", offer.cost.total()},
               {"dollars_of",
                {{"machines", offer.cost.hours},
                 {"gets", offer.cost.gets},
                 {"nat", offer.cost.nat}}},
               {"is_front", offer.is_front},
               {"is_choice", is_choice}});
  return told;
}

std::string name_of(const Offer& offer, const MachineList& list) {
  return fmt::format("{} x {}", offer.count, list.machines[offer.machine].name);
}

double dollars_per_hour(const Offer& offer, const MachineList& list) {
  return offer.count * list.machines[offer.machine].dollars_per_hour;
}

std::string share_text(double share) {
  return 100 * share < 1 ? "under 1 %" : fmt::format("{:.0f} %", 100 * share);
}

/// "1.8 times as long", "4 % longer", "as long": never 1.0 times.
std::string as_long(double factor) {
  if (factor < 1.005) return "as long";
  if (factor < 1.1) return fmt::format("{:.0f} % longer", 100 * (factor - 1));
  return fmt::format("{:.1f} times as long", factor);
}

std::string verdict(std::span<const Offer> offers, const Offer* choice,
                    const MachineList& list, const RecommendFlags& flags) {
  const Offer* cheapest = choose(offers, {});
  if (cheapest == nullptr) return "no machine of the catalog can be judged";
  const Offer* fastest = choose(offers, {.hours = {}, .dollars = INFINITY});
  if (choice == nullptr) {
    return fmt::format(
        "nothing is within the limit: the {} is {}, {:.2f} h and {} dollars",
        flags.hours ? "fastest" : "cheapest",
        name_of(flags.hours ? *fastest : *cheapest, list),
        (flags.hours ? *fastest : *cheapest).hours,
        format_dollars((flags.hours ? *fastest : *cheapest).cost.total()));
  }
  std::string said =
      fmt::format("{}: {:.2f} h, {} dollars", name_of(*choice, list),
                  choice->hours, format_dollars(choice->cost.total()));
  if (dollars_per_hour(*cheapest, list) < dollars_per_hour(*fastest, list) &&
      cheapest->cost.total() < fastest->cost.total()) {
    return said +
           fmt::format(
               "; a smaller machine is better for the money: {} costs "
               "{} less than {} and takes {}, where "
               "the larger would wait {:.0f} % of each step",
               name_of(*cheapest, list),
               share_text(1 - cheapest->cost.total() / fastest->cost.total()),
               name_of(*fastest, list),
               as_long(cheapest->hours / fastest->hours),
               100 * (1 - fastest->step.compute / fastest->step.seconds()));
  }
  return said + "; no smaller machine is better for the money";
}

Json recommendation_json(std::span<const Offer> offers, const Offer* choice,
                         const MachineList& list, const Machine& measured_on,
                         const RecommendFlags& flags) {
  Json machines = Json::array();
  for (const Offer& offer : offers) {
    machines.push_back(
        offer_json(offer, list.machines[offer.machine], &offer == choice));
  }
  const std::set<std::string> dates(list.as_of.begin(), list.as_of.end());
  std::string as_of;
  for (const std::string& date : dates) {
    as_of += (as_of.empty() ? "" : "; ") + date;
  }
  return {{"model", kModel},
          {"as_of", as_of},
          {"measured_on", measured_on.name},
          {"epochs", flags.epochs},
          {"verdict", verdict(offers, choice, list, flags)},
          {"machines", std::move(machines)}};
}

void print(const Json& told, std::ostream& out) {
  out << fmt::format("{:<24} {:>9} {:>8} {:>9} {:>10}\n", "machine", "step",
                     "waiting", "hours", "dollars");
  std::set<std::string> reasons;
  for (const Json& row : told["machines"]) {
    if (row["hours"].is_null()) {
      reasons.insert(row["why_not"].get<std::string>());
      continue;
    }
    if (!row["is_front"].get<bool>() && !row["is_choice"].get<bool>()) continue;
    out << fmt::format("{:<24} {:>9} {:>6.1f} % {:>9.2f} {:>10}{}\n",
                       fmt::format("{} x {}", row["count"].get<std::uint32_t>(),
                                   row["name"].get<std::string>()),
                       time_text(row["step_seconds"].get<double>()),
                       100 * row["wait_fraction"].get<double>(),
                       row["hours"].get<double>(),
                       format_dollars(row["dollars"].get<double>()),
                       row["is_choice"].get<bool>() ? "  <" : "");
  }
  out << '\n' << told["verdict"].get<std::string>() << '\n';
  out << fmt::format("as measured on {}; prices as of {}; {}\n",
                     told["measured_on"].get<std::string>(),
                     told["as_of"].get<std::string>(),
                     told["model"].get<std::string>());
  for (const std::string& reason : reasons) {
    out << "some machines are left out: " << reason << '\n';
  }
}

Result<void> run_recommend(const RecommendFlags& flags,
                           CommandContext& context) {
  if (flags.hours && flags.money) {
    return invalid("--hours or --money, not both");
  }
  LEAT_TRY(Json report, read_profile_report(flags.report));
  LEAT_TRY(const std::string text, read_text(flags.catalog, 1 << 20));
  LEAT_TRY(const MachineList list, parse_machine_list(text, flags.catalog));
  LEAT_TRY(const Machine* machine, machine_of(report, list, flags.measured_on));
  LEAT_TRY(const WholeTraining training, training_of(report, *machine, flags));
  LEAT_TRY(
      const std::vector<Offer> offers,
      judge(training, list.machines, list.store.prices, list.store.billing));
  const Offer* choice =
      choose(offers, {.hours = flags.hours, .dollars = flags.money});
  report["recommendation"] =
      recommendation_json(offers, choice, list, *machine, flags);
  if (!flags.html.empty()) {
    LEAT_TRY_VOID(write_text(flags.html, profile_page(report)));
  }
  if (flags.is_json) {
    context.out << report["recommendation"].dump() << '\n';
  } else {
    print(report["recommendation"], context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_recommend(CLI::App& app) {
  auto flags = std::make_shared<RecommendFlags>();
  app.add_option("REPORT", flags->report, "the output of leat profile --json")
      ->required();
  app.add_option("--catalog", flags->catalog,
                 "machines and prices, a TOML file: examples/machines.toml")
      ->required();
  app.add_option("--on", flags->measured_on,
                 "the machine of the catalog that the report was made on; else "
                 "the first with its accelerator");
  const auto positive = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)
        ->check(amount_up_to(kMostDollars, /*is_positive=*/true));
  };
  positive("--hours", flags->hours, "the cheapest that takes no longer");
  positive("--money", flags->money, "the fastest that costs no more dollars");
  positive("--epochs", flags->epochs, "epochs of the whole training")
      ->capture_default_str();
  positive("--steps", flags->steps,
           "steps of an epoch, with the processes that were profiled; else the "
           "loader's length");
  positive("--gradient-bytes", flags->gradient_bytes,
           "bytes of gradients that ranks reduce in a step; else as seen under "
           "DistributedDataParallel");
  positive("--gradient-buckets", flags->gradient_buckets,
           "the number of buckets of gradients; else 25 MiB each");
  app.add_flag("--cache", flags->has_cache,
               "epochs after the first read the samples that fit into half the "
               "memory and the disk from there (leat.Cache)");
  app.add_option("--html", flags->html, "also write a page to look at");
  app.add_flag("--json", flags->is_json, "print one JSON object");
  app.footer(
      "Example:\n  leat profile --json -- python train.py > report.json\n"
      "  leat recommend report.json --catalog examples/machines.toml --epochs "
      "90 --hours 24");
  return [flags](CommandContext& context) {
    return run_recommend(*flags, context);
  };
}

}  // namespace

const Command kRecommendCommand{
    .name = "recommend",
    .summary = "predict the cost of a profiled training on other machines",
    .add = &add_recommend,
};

}  // namespace leat
