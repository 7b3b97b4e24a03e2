// From a report to the step it is about, and to what would change it.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "leat/base/errors.h"
#include "leat/cli/profile_report.h"
#include "leat/profile/what_if.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

/// Nobody has more, and it fits into what counts them.
constexpr double kMostWorkers = 1e6;

/// The value at a path of keys, or null if there is none.
const Json* find(const Json& report, std::initializer_list<const char*> path) {
  const Json* at = &report;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at->is_null() ? nullptr : at;
}

/// Reads numbers of at least 0 and remembers the first that is not one.
class Numbers {
 public:
  explicit Numbers(const Json& report) : report_(report) {}

  std::optional<double> maybe(std::initializer_list<const char*> path) {
    const Json* found = find(report_, path);
    if (found == nullptr) return std::nullopt;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (!(value >= 0) || !std::isfinite(value)) {
      wrong(path, "is no number of at least 0");
    }
    return value;
  }
  double must(std::initializer_list<const char*> path) {
    const auto value = maybe(path);
    if (!value) wrong(path, "is missing");
    return value.value_or(0);
  }
  std::uint32_t count(std::initializer_list<const char*> path) {
    const double value = must(path);
    if (!(value >= 1 && value <= 1e6)) wrong(path, "is no count");
    return wrong_ ? 1 : static_cast<std::uint32_t>(value);
  }
  const std::optional<Error>& wrong() const { return wrong_; }

 private:
  void wrong(std::initializer_list<const char*> path, const char* what) {
    if (wrong_) return;
    std::string name;
    for (const char* key : path) {
      name += name.empty() ? "" : ".";
      name += key;
    }
    wrong_ = invalid("the report's {} {}: make the report again", name, what);
  }

  const Json& report_;
  std::optional<Error> wrong_;
};

Json step_json(const PredictedStep& step) {
  return {{"compute", step.compute},
          {"interconnect", step.interconnect},
          {"network", step.network},
          {"preparation", step.preparation},
          {"fetch", step.fetch}};
}

/// A change by a smaller factor is printed as a percentage.
constexpr double kLeastFactor = 1.1;

/// Rounded up, so never less than needed.
std::string percent_text(double share) {
  const double percent = 100 * share;
  return percent < 10
             ? fmt::format("{:.1f} %", std::ceil(percent * 10 - 1e-9) / 10)
             : fmt::format("{:.0f} %", std::ceil(percent - 1e-9));
}

std::string change_in_words(const std::string& knob, double value) {
  if (knob == "load_ahead") {
    return "batches made while training computes (num_workers=1, or Leat)";
  }
  if (knob == "workers") {
    return fmt::format("{:.0f} workers a rank", value);
  }
  if (knob == "cached") {
    return percent_text(value) + " of the bytes cached";
  }
  // A change that rounds to a factor of 1.0 would read as none.
  if (knob == "latency") {
    return 1 / value < kLeastFactor
               ? percent_text(1 - value) + " less latency"
               : fmt::format("1/{:.1f} of the latency", 1 / value);
  }
  return value < kLeastFactor
             ? fmt::format("{} more {}", percent_text(value - 1), knob)
             : fmt::format("{:.1f} times the {}", value, knob);
}

}  // namespace

Result<MeasuredStep> measured_step(const Json& report) {
  if (const Json* why = find(report, {"failed"})) {
    return invalid("the profile failed: {}",
                   why->is_string() ? why->get<std::string>() : "");
  }
  Numbers numbers(report);
  const auto part = [&](const char* name) {
    return numbers.maybe({"parts", name, "seconds"}).value_or(0);
  };
  const auto is_true = [&](const char* name) {
    const Json* told = find(report, {name});
    return told != nullptr && *told == true;
  };
  // Older reports tell by the loader's name alone.
  const Json* loader = find(report, {"loader"});
  const bool is_pipelined = find(report, {"is_pipelined"}) != nullptr
                                ? is_true("is_pipelined")
                                : loader != nullptr && *loader == "leat.Loader";
  std::optional<std::uint32_t> workers;
  if (const auto told = numbers.maybe({"workers"})) {
    workers = static_cast<std::uint32_t>(std::min(*told, kMostWorkers));
  }
  const bool has_warm = find(report, {"parts", "input"}) == nullptr;
  const auto warm_supply = numbers.maybe({"supply_seconds", "warm"});
  const auto cold_supply = numbers.maybe({"supply_seconds", "cold"});
  const MeasuredStep step{
      .compute = numbers.must({"parts", "compute", "seconds"}),
      .interconnect = part("interconnect"),
      .network = part("network"),
      .preparation = part("preparation"),
      .fetch = part("fetch") + part("input"),
      .has_warm = has_warm,
      .warm_supply = warm_supply.value_or(0),
      .cold_supply = cold_supply.value_or(0),
      .has_supply = cold_supply && (warm_supply || !has_warm),
      .is_pipelined = is_pipelined,
      .loads_ahead = is_true("loads_ahead"),
      .workers = workers,
      .preparation_cpu = numbers.maybe({"supply_cpu_seconds"}),
      .cores = numbers.must({"cores"}),
      .latency_share = numbers.maybe({"fetch_a_batch", "latency_share"}),
      .devices = numbers.count({"settings", "nproc_per_node"}),
      .nodes = numbers.count({"settings", "nodes"})};
  if (numbers.wrong()) return *numbers.wrong();
  return step;
}

Result<Json> asked_json(const StepModel& model,
                        std::span<const std::string> asked) {
  WhatIfSetting setting = model.measured_setting();
  Json with = Json::object();
  for (const std::string& one : asked) {
    const std::size_t equals = one.find('=');
    double value = 0;
    const char* const end = one.data() + one.size();
    const char* const begin = one.data() + std::min(equals, one.size() - 1) + 1;
    if (equals == std::string::npos ||
        std::from_chars(begin, end, value).ptr != end || begin == end) {
      return invalid("--with {}: not NAME=NUMBER, such as cached=0.5", one);
    }
    const std::string name = one.substr(0, equals);
    LEAT_TRY_VOID(turn(setting, model.measured(), name, value));
    with[name] = value;
  }
  const PredictedStep step = model.predict(setting);
  return Json{{"with", std::move(with)},
              {"step_seconds", step.seconds()},
              {"parts", step_json(step)},
              {"speedup", model.speedup(setting)}};
}

Json what_if_json(const StepModel& model) {
  Json curves = Json::object();
  for (const Curve& curve : what_if_curves(model)) {
    Json points = Json::array();
    for (const CurvePoint& point : curve.points) {
      points.push_back({{"value", point.value},
                        {"step_seconds", point.step.seconds()},
                        {"parts", step_json(point.step)},
                        {"speedup", point.speedup}});
    }
    curves[std::string(to_string(curve.knob))] = {{"points", std::move(points)},
                                                  {"why_not", curve.why_not}};
  }
  Json told = Json::array();
  for (const Removal& removal : removals(model)) {
    Json changes = Json::array();
    for (const Change& change : removal.changes) {
      changes.push_back({{"change", to_string(change.knob)},
                         {"value", change.value},
                         {"step_seconds", change.step_seconds}});
    }
    told.push_back({{"part", to_string(removal.part)},
                    {"seconds", removal.seconds},
                    {"changes", std::move(changes)}});
  }
  return {{"curves", std::move(curves)}, {"removals", std::move(told)}};
}

void print_what_if(const Json& what_if, std::ostream& out) {
  const char* first = "what would help: ";
  for (const Json& removal : what_if["removals"]) {
    out << fmt::format("{}{} ({}) goes with ", first,
                       removal["part"].get<std::string>(),
                       time_text(removal["seconds"].get<double>()));
    first = "then ";
    const char* before = "";
    for (const Json& change : removal["changes"]) {
      out << fmt::format("{}{} ({} a step)", before,
                         change_in_words(change["change"].get<std::string>(),
                                         change["value"].get<double>()),
                         time_text(change["step_seconds"].get<double>()));
      before = ", or ";
    }
    out << (removal["changes"].empty() ? "nothing that was measured\n" : "\n");
  }
  if (what_if["removals"].empty()) {
    out << "what would help: a faster accelerator; nothing else takes 2 % of "
           "a step\n";
  }
  out << "\nspeed, if one thing were otherwise (1 is as measured):\n";
  for (const auto& [knob, curve] : what_if["curves"].items()) {
    out << fmt::format("  {:<12}", knob);
    if (!curve["points"].empty()) {
      for (const Json& point : curve["points"]) {
        out << fmt::format(" {:g}:{:.2f}", point["value"].get<double>(),
                           point["speedup"].get<double>());
      }
      out << '\n';
    } else {
      out << " - " << curve["why_not"].get<std::string>() << '\n';
    }
  }
  if (const auto asked = what_if.find("asked"); asked != what_if.end()) {
    out << "\nwith ";
    const char* before = "";
    for (const auto& [name, value] : (*asked)["with"].items()) {
      out << fmt::format("{}{}={:g}", before, name, value.get<double>());
      before = ", ";
    }
    out << fmt::format(": {} a step, {:.2f} times the speed\n",
                       time_text((*asked)["step_seconds"].get<double>()),
                       (*asked)["speedup"].get<double>());
  }
}

}  // namespace leat
