#include "leat/cli/ledger_appendix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cli/plan_report.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDash = "-";

enum class Shape : std::uint8_t { kCount, kBytes, kSeconds, kDollars, kAmount };

struct Quantity {
  std::string_view key;
  std::string_view label;
  Shape shape;
};

constexpr std::array kQuantities = {
    Quantity{"gets", "GETs", Shape::kCount},
    Quantity{"lists", "LISTs", Shape::kCount},
    Quantity{"bytes", "bytes read", Shape::kBytes},
    Quantity{"request_dollars", "requests, dollars", Shape::kDollars},
    Quantity{"transfer_dollars", "transfer, dollars", Shape::kDollars},
    Quantity{"seconds", "time", Shape::kSeconds},
    Quantity{"stalled_accelerator_seconds", "accelerators waited",
             Shape::kSeconds},
    Quantity{"stalled_dollars", "waiting, dollars", Shape::kDollars},
    Quantity{"processor_seconds", "processor time", Shape::kSeconds},
    Quantity{"processor_joules", "processors, J", Shape::kAmount},
    Quantity{"accelerator_joules", "accelerators, J", Shape::kAmount},
    Quantity{"kwh", "energy, kWh", Shape::kAmount},
    Quantity{"grams_per_kwh", "grid, g CO2e/kWh", Shape::kAmount},
    Quantity{"co2_grams", "emissions, g CO2e", Shape::kAmount}};

std::string shown(double value, Shape shape) {
  switch (shape) {
    case Shape::kCount:
      return fmt::format("{:.0f}", value);
    case Shape::kBytes:
      return format_bytes(static_cast<std::uint64_t>(value));
    case Shape::kSeconds:
      return fmt::format("{:.1f} s", value);
    case Shape::kDollars:
      return format_dollars(value);
    case Shape::kAmount:
      break;
  }
  return fmt::format("{:.4g}", value);
}

std::optional<double> number_of(const Json& ledger, std::string_view key) {
  const auto found = ledger.find(key);
  if (found == ledger.end()) return std::nullopt;
  return found->get<double>();
}

std::string word_of(const Json& ledger, std::string_view key) {
  const auto found = ledger.find(key);
  return found == ledger.end() ? "" : in_a_line(*found);
}

/// A text with some characters written otherwise.
template <class Pairs>
std::string escaped(std::string_view text, const Pairs& pairs) {
  std::string safe;
  for (const char c : text) {
    const auto found = std::ranges::find(pairs, c, &Pairs::value_type::first);
    if (found == pairs.end()) {
      safe += c;
    } else {
      safe += found->second;
    }
  }
  return safe;
}

using Escape = std::pair<char, std::string_view>;

std::string for_latex(std::string_view text) {
  static const std::array kEscapes = {Escape{'\\', "\\textbackslash{}"},
                                      Escape{'{', "\\{"},
                                      Escape{'}', "\\}"},
                                      Escape{'$', "\\$"},
                                      Escape{'&', "\\&"},
                                      Escape{'#', "\\#"},
                                      Escape{'%', "\\%"},
                                      Escape{'_', "\\_"},
                                      Escape{'^', "\\textasciicircum{}"},
                                      Escape{'~', "\\textasciitilde{}"}};
  return escaped(text, kEscapes);
}

std::string for_html(std::string_view text) {
  static const std::array kEscapes = {Escape{'&', "&amp;"}, Escape{'<', "&lt;"},
                                      Escape{'>', "&gt;"},
                                      Escape{'"', "&quot;"}};
  return escaped(text, kEscapes);
}

/// "-" or "0.25 x" of each run but the first.
std::string ratio(const std::optional<double>& first,
                  const std::optional<double>& other) {
  if (!first || !other || *first == 0) return kDash;
  return fmt::format("{:.3g} x", *other / *first);
}

/// A line's cells: the runs' values, each but the first with its ratio.
std::vector<std::string> cells_of(const LedgerLine& line) {
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < line.values.size(); ++i) {
    const bool has_ratio =
        i > 0 && !line.ratios.empty() && line.ratios[i - 1] != kDash;
    cells.push_back(
        has_ratio ? fmt::format("{} ({})", line.values[i], line.ratios[i - 1])
                  : line.values[i]);
  }
  return cells;
}

/// The runs' words for `key`, each once.
std::string all_words(std::span<const NamedLedger> runs, std::string_view key) {
  std::vector<std::string> words;
  for (const NamedLedger& run : runs) {
    std::string word = word_of(run.ledger, key);
    if (!word.empty() && std::ranges::find(words, word) == words.end()) {
      words.push_back(std::move(word));
    }
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

Result<NamedLedger> ledger_in(const std::string& text,
                              const std::string& name) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto refuse = [&](std::string_view why) {
    return invalid("{}: {}", name, why);
  };
  if (!root.is_object()) {
    return refuse("is no JSON object: give the output of leat bench --json");
  }
  const Json& ledger = root.contains("ledger") ? root["ledger"] : root;
  if (!ledger.is_object() || !ledger.contains("gets")) {
    return refuse(
        "has no ledger: give the output of leat bench --json or of leat "
        "profile --json, or loader.ledger() as JSON");
  }
  const auto is_amount_or_missing = [&](std::string_view key) {
    const auto found = ledger.find(key);
    return found == ledger.end() ||
           (found->is_number() && found->get<double>() >= 0 &&
            found->get<double>() < 1e18);
  };
  for (const Quantity& quantity : kQuantities) {
    if (!is_amount_or_missing(quantity.key)) {
      return refuse(fmt::format("{} is no amount", quantity.key));
    }
  }
  if (!is_amount_or_missing("began")) return refuse("began is no time");
  for (const char* key :
       {"provider", "processor_energy", "grid", "carbon_source"}) {
    if (ledger.contains(key) && !ledger[key].is_string()) {
      return refuse(fmt::format("{} is no text", key));
    }
  }
  return NamedLedger{name, ledger};
}

std::vector<LedgerLine> ledger_lines(std::span<const NamedLedger> runs) {
  std::vector<LedgerLine> lines;
  for (const Quantity& quantity : kQuantities) {
    LedgerLine line{.label = std::string(quantity.label)};
    bool is_told = false;
    std::optional<double> first;
    for (const NamedLedger& run : runs) {
      const auto value = number_of(run.ledger, quantity.key);
      is_told = is_told || value.has_value();
      if (line.values.empty()) {
        first = value;
      } else {
        line.ratios.push_back(ratio(first, value));
      }
      line.values.push_back(value ? shown(*value, quantity.shape) : kDash);
    }
    if (is_told) lines.push_back(std::move(line));
  }
  for (const auto& [key, label] :
       {std::pair{"processor_energy", "energy of processors"},
        std::pair{"provider", "prices of"}, std::pair{"grid", "grid"}}) {
    if (all_words(runs, key).empty()) continue;
    LedgerLine line{.label = label};
    for (const NamedLedger& run : runs) {
      const std::string word = word_of(run.ledger, key);
      line.values.push_back(word.empty() ? kDash : word);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string ledger_note(std::span<const NamedLedger> runs) {
  std::string note =
      "Requests, bytes and time are counted; dollars are list prices or the "
      "user's.";
  const auto has = [&](std::string_view word) {
    return std::ranges::any_of(runs, [&](const NamedLedger& run) {
      return word_of(run.ledger, "processor_energy") == word;
    });
  };
  if (has("measured")) {
    note += " Measured energy is that of all programs of the machine.";
  }
  if (has("modelled")) {
    note +=
        " Modelled energy is this process' processor time, times the watts of "
        "a busy core.";
  }
  const std::string source = all_words(runs, "carbon_source");
  if (!source.empty()) note += " Grams of CO2e for a kWh: " + source + ".";
  return note;
}

std::string ledger_text(std::span<const NamedLedger> runs) {
  const auto lines = ledger_lines(runs);
  std::size_t label = 0;
  std::vector<std::size_t> widths;
  for (const NamedLedger& run : runs) widths.push_back(run.name.size());
  for (const LedgerLine& line : lines) {
    label = std::max(label, line.label.size());
    const auto cells = cells_of(line);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  std::string text = fmt::format("{:<{}}", "", label);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += fmt::format("  {:>{}}", runs[i].name, widths[i]);
  }
  text += '\n';
  for (const LedgerLine& line : lines) {
    text += fmt::format("{:<{}}", line.label, label);
    const auto cells = cells_of(line);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += fmt::format("  {:>{}}", cells[i], widths[i]);
    }
    text += '\n';
  }
  return text + ledger_note(runs) + '\n';
}

std::string ledger_latex(std::span<const NamedLedger> runs) {
  std::string text = "\\begin{table}\n\\centering\n\\begin{tabular}{l" +
                     std::string(runs.size(), 'r') + "}\n\\hline\n";
  for (const NamedLedger& run : runs) text += " & " + for_latex(run.name);
  text += " \\\\\n\\hline\n";
  for (const LedgerLine& line : ledger_lines(runs)) {
    text += for_latex(line.label);
    for (const std::string& cell : cells_of(line)) {
      text += " & " + for_latex(cell);
    }
    text += " \\\\\n";
  }
  return text + "\\hline\n\\end{tabular}\n\\caption{What the runs cost. " +
         for_latex(ledger_note(runs)) + "}\n\\end{table}\n";
}

std::string ledger_html(std::span<const NamedLedger> runs) {
  std::string text =
      "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>What the runs cost</title>\n"
      "<style>:root{color-scheme:light dark}"
      "body{font-family:sans-serif;margin:clamp(.5em,3vw,2em)}"
      "div{overflow-x:auto}"
      "td,th{padding:.2em clamp(.2em,1.5vw,1em);text-align:right;"
      "overflow-wrap:anywhere}"
      "td:first-child{text-align:left;overflow-wrap:normal}</style>\n"
      "<div><table>\n<tr><th></th>";
  for (const NamedLedger& run : runs) {
    text += "<th>" + for_html(run.name) + "</th>";
  }
  text += "</tr>\n";
  for (const LedgerLine& line : ledger_lines(runs)) {
    text += "<tr><td>" + for_html(line.label) + "</td>";
    for (const std::string& cell : cells_of(line)) {
      text += "<td>" + for_html(cell) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n<p>" + for_html(ledger_note(runs)) + "</p>\n";
}

}  // namespace leat
