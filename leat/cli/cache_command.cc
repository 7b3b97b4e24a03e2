// leat cache ls|verify|clear PATH    Looks at a cache folder, or empties it.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cache/inspect.h"
#include "leat/cli/commands.h"
#include "leat/cli/progress_line.h"

namespace leat {
namespace {

struct CacheFlags {
  std::string action;
  std::string path;
  bool is_json = false;
};

nlohmann::ordered_json to_json(const SegmentReport& report) {
  return {{"path", report.path},
          {"records", report.records},
          {"bytes", report.record_bytes},
          {"allocated_bytes", report.allocated_bytes},
          {"in_use", report.is_in_use},
          {"segment", report.is_ours},
          {"damaged", report.is_damaged},
          {"unread", report.unread},
          {"bad", report.bad}};
}

std::string remark_on(const SegmentReport& report) {
  if (!report.unread.empty()) return ": " + report.unread;
  if (report.is_damaged) return ": its header is damaged";
  return report.is_ours ? "" : ": no segment of this version";
}

void print(const std::vector<SegmentReport>& reports, Bodies bodies,
           std::ostream& out) {
  SegmentReport all;
  for (const SegmentReport& one : reports) {
    all.records += one.records;
    all.record_bytes += one.record_bytes;
    all.allocated_bytes += one.allocated_bytes;
    all.bad += one.bad;
    out << fmt::format("{:>10} {:>10} {:>8} {}{}\n", one.records,
                       format_bytes(one.allocated_bytes),
                       one.is_in_use ? "in use" : "", one.path, remark_on(one));
  }
  out << fmt::format("{:>10} {:>10} records in {} segments", all.records,
                     format_bytes(all.allocated_bytes), reports.size());
  if (bodies == Bodies::kCheck) out << fmt::format(", {} bad", all.bad);
  out << '\n';
}

Result<std::vector<SegmentReport>> look(const CacheFlags& flags, Bodies bodies,
                                        CommandContext& context) {
  SystemFileOps ops;
  ProgressLine line(context);
  const auto show = [&](const InspectProgress& now) {
    const auto mib = [](std::uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(kMiB);
    };
    line.show(
        {.what = bodies == Bodies::kCheck ? "verifying" : "reading entries",
         .done = mib(now.done_bytes),
         .all = mib(now.all_bytes),
         .unit = "MiB"});
  };
  return inspect_cache(flags.path, bodies, ops, context.stop, show);
}

Result<void> run_look(const CacheFlags& flags, Bodies bodies,
                      CommandContext& context) {
  LEAT_TRY(const std::vector<SegmentReport> reports,
           look(flags, bodies, context));
  std::uint64_t bad = 0;
  std::uint64_t damaged = 0;
  const SegmentReport* unread = nullptr;
  nlohmann::ordered_json json = nlohmann::json::array();
  for (const SegmentReport& report : reports) {
    bad += report.bad;
    if (report.is_damaged) ++damaged;
    if (!report.unread.empty()) unread = &report;
    json.push_back(to_json(report));
  }
  if (flags.is_json) {
    context.out << json.dump(-1, ' ', false,
                             nlohmann::json::error_handler_t::replace)
                << '\n';
  } else {
    print(reports, bodies, context.out);
  }
  if (bodies == Bodies::kTrust) return {};
  if (unread != nullptr) {
    return denied("{} could not be read: {}; verify as the user that wrote it",
                  unread->path, unread->unread);
  }
  if (bad == 0) return {};
  std::string what = fmt::format("{} records", bad - damaged);
  if (damaged != 0) {
    what = fmt::format("the headers of {} segments{}", damaged,
                       bad == damaged ? "" : " and " + what);
  }
  return corrupt(
      "{} in {} are bad: a loader fetches again what they held and gives their "
      "room back; if it happens often, look at the disk",
      what, flags.path);
}

Result<void> run_clear(const CacheFlags& flags, CommandContext& context) {
  SystemFileOps ops;
  LEAT_TRY(const ClearReport report, clear_cache(flags.path, ops));
  if (flags.is_json) {
    context.out << nlohmann::ordered_json{{"removed", report.removed},
                                          {"in_use", report.in_use},
                                          {"allocated_bytes",
                                           report.allocated_bytes}}
                       .dump()
                << '\n';
    return {};
  }
  context.out << fmt::format("removed {} segments, {}", report.removed,
                             format_bytes(report.allocated_bytes));
  if (report.in_use != 0) {
    context.out << fmt::format("; left {} that a running job writes",
                               report.in_use);
  }
  context.out << '\n';
  return {};
}

std::function<Result<void>(CommandContext&)> add_cache(CLI::App& app) {
  auto flags = std::make_shared<CacheFlags>();
  app.add_option("ACTION", flags->action,
                 "ls: lists segments; verify: reads every record; clear: "
                 "removes segments that no running job writes")
      ->required()
      ->check(CLI::IsMember({"ls", "verify", "clear"}));
  app.add_option("PATH", flags->path, "the folder of leat.Cache(disk=)")
      ->required();
  app.add_flag("--json", flags->is_json, "print one JSON value");
  app.footer("Example:\n  leat cache verify /nvme/leat");
  return [flags](CommandContext& context) -> Result<void> {
    if (flags->action == "clear") return run_clear(*flags, context);
    return run_look(*flags,
                    flags->action == "verify" ? Bodies::kCheck : Bodies::kTrust,
                    context);
  };
}

}  // namespace

const Command kCacheCommand{
    .name = "cache",
    .summary = "look at a cache folder, check it, or empty it",
    .add = &add_cache,
};

}  // namespace leat
