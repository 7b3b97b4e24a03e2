#include "leat/cli/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/units.h"

namespace leat {
namespace {

constexpr std::string_view kUnknown = "-";
constexpr std::string_view kUnbounded = "any";
/// The lines that are kept for decisions, with their heading, for any number of
/// jobs.
constexpr std::size_t kLeastForDecisions = 4;
constexpr std::size_t kMostName = 24;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) != 0x80;
}

std::size_t width_of(std::string_view text) {
  return std::size_t(std::ranges::count_if(text, begins_character));
}

/// At most `columns` characters, the last an ellipsis where some are missing.
std::string cut(std::string_view text, std::size_t columns) {
  if (width_of(text) <= columns) return std::string(text);
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size(); ++bytes) {
    if (begins_character(text[bytes]) && ++seen == columns) break;
  }
  return std::string(text.substr(0, bytes)) + "\u2026";
}

std::string grouped(double value) {
  const std::string digits = std::abs(value) < 100
                                 ? fmt::format("{:.3g}", value)
                                 : fmt::format("{:.0f}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (std::abs(value) >= 100 && i > 0 && left % 3 == 0 &&
        digits[i - 1] != '-') {
      text += ',';
    }
    text += digits[i];
  }
  return text;
}

std::string percent(double ratio) {
  return fmt::format("{:.0f} %", 100 * ratio);
}

template <class T>
std::string count_or_any(const std::optional<T>& value) {
  return value ? grouped(double(*value)) : std::string(kUnbounded);
}

std::string bytes_or_any(const std::optional<std::uint64_t>& bytes,
                         std::string_view per = "") {
  return bytes ? format_bytes(*bytes).append(per) : std::string(kUnbounded);
}

std::string hit_rate(const JobView& job) {
  const double hits = total_of(job.totals, counters::kRamHits) +
                      total_of(job.totals, counters::kDiskHits) +
                      total_of(job.totals, counters::kPeerHits);
  const double reads = hits + total_of(job.totals, counters::kCacheMisses);
  return reads > 0 ? percent(hits / reads) : std::string(kUnknown);
}

std::uint64_t shown(double bytes) {
  return bytes > 0 ? static_cast<std::uint64_t>(std::min(bytes, 1e18)) : 0;
}

using Row = std::vector<std::string>;

Row row_of(const JobView& job) {
  return {
      cut(job.name.empty() ? job.id : job.name, kMostName),
      job.bottleneck.empty() ? std::string(kUnknown) : cut(job.bottleneck, 12),
      grouped(job.found_rate),
      job.predicted_rate > 0 ? grouped(job.predicted_rate)
                             : std::string(kUnknown),
      percent(job.wait_fraction),
      count_or_any(job.share.threads),
      count_or_any(job.share.in_flight),
      bytes_or_any(job.share.bytes_per_second, "/s"),
      bytes_or_any(job.share.ram_bytes),
      bytes_or_any(job.share.disk_bytes),
      hit_rate(job),
      job.dataset};
}

const Row kHeads = {"JOB",     "BOUND BY", "SAMPLES/S", "PREDICTED",
                    "WAITING", "THREADS",  "REQUESTS",  "BANDWIDTH",
                    "RAM",     "DISK",     "HITS",      "DATASET"};

/// Words stand to the left, numbers to the right.
bool is_words(std::size_t column) {
  return column < 2 || column + 1 == kHeads.size();
}

std::vector<std::string> table_of(const NodeView& view) {
  std::vector<Row> rows{kHeads};
  for (const JobView& job : view.jobs) rows.push_back(row_of(job));
  std::vector<std::size_t> widths(kHeads.size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width_of(row[i]));
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string room(widths[i] - width_of(row[i]), ' ');
      line += is_words(i) ? row[i] + room : room + row[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

/// A line each.
std::vector<std::string> links_of(const NodeView& view) {
  std::vector<std::string> lines;
  for (const LinkView& link : view.links) {
    lines.push_back(
        fmt::format("read {}: {}/s of {}/s",
                    link.bucket.empty() ? "in all" : "of " + link.bucket,
                    format_bytes(shown(link.read_bytes_per_second)),
                    format_bytes(shown(link.bytes_per_second))));
  }
  return lines;
}

std::vector<std::string> head_of(const NodeView& view) {
  double given = 0;
  for (const JobView& job : view.jobs) {
    given += double(job.share.in_flight.value_or(0));
  }
  const std::string requests =
      view.in_flight > 0 ? fmt::format("   requests {:.0f} of {} given out",
                                       given, view.in_flight)
                         : "";
  std::vector<std::string> lines = {
      fmt::format("leat top  {}  {}  {} job{}", view.name, view.objective,
                  view.jobs.size(), view.jobs.size() == 1 ? "" : "s"),
      fmt::format("cores {:.1f} of {:.0f} in use, {:.1f} outside of Leat",
                  view.cores_busy, view.cores, view.cores_busy_outside) +
          requests};
  std::ranges::move(links_of(view), std::back_inserter(lines));
  lines.emplace_back();
  return lines;
}

/// The latest first, with the seconds until now and the names of jobs.
std::vector<std::string> decisions_of(const NodeView& view) {
  std::vector<std::string> lines;
  for (std::size_t i = view.decisions.size(); i-- > 0;) {
    Decision decision = view.decisions[i].decision;
    decision.at_seconds = view.decisions[i].time_seconds - view.time_seconds;
    const std::string& name = view.decisions[i].job_name;
    if (!name.empty()) decision.job = name;
    lines.push_back(to_string(decision));
  }
  return lines;
}

}  // namespace

std::string top_screen(const NodeView& view, const ScreenSize& size) {
  const std::size_t rows = size.rows == 0 ? std::size_t(-1) : size.rows;
  std::vector<std::string> lines = head_of(view);
  std::vector<std::string> decisions = decisions_of(view);
  std::vector<std::string> table = table_of(view);
  const std::size_t reserved =
      lines.size() + (decisions.empty()
                          ? 0
                          : std::min(decisions.size() + 2, kLeastForDecisions));
  const std::size_t room = std::max<std::size_t>(
      rows > reserved ? rows - reserved : 0, 2);  // Its heads, and a line.
  if (table.size() > room) {
    const std::size_t hidden = table.size() - room + 1;
    table.resize(room - 1);
    table.push_back(fmt::format("and {} more", hidden));
  }
  std::ranges::move(table, std::back_inserter(lines));
  if (!decisions.empty()) {
    lines.insert(lines.end(), {"", "DECISIONS, seconds ago"});
    std::ranges::move(decisions, std::back_inserter(lines));
  }
  if (lines.size() > rows) lines.resize(rows);
  std::string screen;
  for (const std::string& line : lines) {
    screen += size.columns == 0 ? line : cut(line, size.columns);
    screen += '\n';
  }
  return screen;
}

}  // namespace leat
