// leat doctor [URL]    Checks what a job will stand on, and says what to fix.

#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/units.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/loader_flags.h"
#include "leat/cli/progress_line.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/sources.h"
#include "leat/engine/stores.h"
#include "leat/index/open_catalogue.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/limits.h"

namespace leat {
namespace {

/// Open files that the default window of requests wants, with room to spare.
constexpr std::uint64_t kWantedFiles = 1024;
constexpr std::uint64_t kLittleMemory = 4 * kGiB;

struct Finding {
  std::string check;
  bool is_good = true;
  bool is_warning = false;  ///< Good enough to run, and worth a look.
  std::string found;
  std::vector<std::string> details{};
  std::string remedy;  ///< Empty where nothing needs one.
};

std::vector<Finding> check_machine(const Env& env) {
  const Limits limits = effective_limits();
  std::vector<Finding> findings;
  findings.push_back(
      {.check = "cpus",
       .found = fmt::format("{:.1f}, by {}; {} threads decode", limits.cpus,
                            limits.cpus_from, limits.threads())});
  const bool has_memory = limits.memory_bytes >= kLittleMemory;
  findings.push_back(
      {.check = "memory",
       .is_good = has_memory,
       .found = fmt::format("{}, by {}", format_bytes(limits.memory_bytes),
                            limits.memory_from),
       .remedy = has_memory
                     ? ""
                     : "a quarter of it is what a loader takes by default; "
                       "large batches need more"});
  const bool has_files = limits.open_files >= kWantedFiles;
  findings.push_back({.check = "open files",
                      .is_good = has_files,
                      .found = limits.open_files == Limits::kUnlimited
                                   ? "unlimited"
                                   : std::to_string(limits.open_files),
                      .remedy = has_files ? "" : "raise it: ulimit -n 65536"});
  const Result<Launch> launch = read_launch(env);
  findings.push_back(
      {.check = "launcher",
       .is_good = launch.has_value(),
       .found = !launch ? launch.error().message()
                : launch->launcher.empty()
                    ? "none: one rank"
                    : fmt::format("{}: rank {} of {}", launch->launcher,
                                  launch->rank.rank, launch->rank.world_size),
       .remedy = launch ? "" : "start through torchrun, srun or mpirun"});
  return findings;
}

/// An argument that cannot be has its own remedy in the error.
std::string remedy_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "";
    case ErrorCode::kPermissionDenied:
      return "check the credentials and what they allow";
    default:
      return "check the URL, --endpoint-url and the network";
  }
}

/// Whether the named objects, without which nothing else matters, are there: of
/// many, the first is asked for.
Result<std::string> reach_named(const OpenedStore& opened,
                                const std::vector<std::string>& names,
                                const std::stop_token& stop) {
  const std::string key = key_in_store(opened.prefix, names.front());
  const TimePoint begin = SteadyClock().now();
  LEAT_TRY(const ObjectInfo first, opened.store->stat(key, stop));
  return fmt::format(
      "{} answers in {}: {}{}", opened.store->url_of(key),
      format_duration(SteadyClock().now() - begin),
      format_bytes(first.size_bytes),
      names.size() == 1
          ? ""
          : fmt::format("; the first of {} objects", names.size()));
}

/// The same for a folder that cannot be listed: all that can be asked for is a
/// catalogue.
Result<void> reach_catalogue(const std::string& url, const OpenedStore& opened,
                             const std::stop_token& stop, Finding& finding) {
  const TimePoint begin = SteadyClock().now();
  Result<ObjectInfo> published =
      opened.store->stat(published_key(opened.prefix), stop);
  const bool is_there = published.has_value();
  if (!is_there && published.error().code() != ErrorCode::kNotFound) {
    return std::move(published).error();
  }
  finding.found = fmt::format(
      "{} answers in {}; plain HTTP, which cannot be listed: {}", url,
      format_duration(SteadyClock().now() - begin),
      is_there ? "a catalogue is published" : "no catalogue is published");
  if (!is_there) {
    finding.remedy =
        "name the objects, such as shard-{0000..0128}.tar, or publish a "
        "catalogue (leat index --publish)";
  }
  return {};
}

Result<void> reach_listing(const std::string& url, const OpenedStore& opened,
                           const std::stop_token& stop, Finding& finding) {
  ListRequest request;
  request.prefix = opened.prefix.empty() ? "" : opened.prefix + "/";
  const TimePoint begin = SteadyClock().now();
  LEAT_TRY(const ListPage page, opened.store->list(request, stop));
  finding.found = fmt::format("{} answers a listing in {}", url,
                              format_duration(SteadyClock().now() - begin));
  if (page.objects.empty() && page.common_prefixes.empty()) {
    finding.is_good = false;
    finding.found += ", but nothing is there";
    finding.remedy = "check the prefix";
  }
  return {};
}

Result<void> try_reach(const SourcePlace& place, const StoreOptions& options,
                       CommandContext& context, Finding& finding) {
  LEAT_TRY(const OpenedStore opened,
           open_store(place.url, options, context.env, nullptr));
  const std::vector<std::string> names = place.selection.names();
  if (!names.empty()) {
    LEAT_TRY(finding.found, reach_named(opened, names, context.stop));
    return {};
  }
  return opened.store->traits().can_list
             ? reach_listing(place.url, opened, context.stop, finding)
             : reach_catalogue(place.url, opened, context.stop, finding);
}

Finding out_of_reach(const Error& error) {
  return {.check = "reach",
          .is_good = false,
          .found = error.message(),
          .remedy = remedy_for(error.code())};
}

Finding check_reach(const SourcePlace& place, const StoreOptions& options,
                    CommandContext& context) {
  Finding finding{.check = "reach"};
  const Result<void> done = try_reach(place, options, context, finding);
  return done ? finding : out_of_reach(done.error());
}

Result<std::vector<Finding>> check_access(const std::string& url,
                                          const StoreOptions& options,
                                          CommandContext& context) {
  LEAT_TRY(std::vector<Diagnosis> diagnoses,
           diagnose_access(url, options, context.env, context.stop));
  std::vector<Finding> findings;
  findings.reserve(diagnoses.size());
  for (Diagnosis& one : diagnoses) {
    findings.push_back({.check = std::move(one.check),
                        .is_good = one.level != Diagnosis::Level::kBad,
                        .is_warning = one.level == Diagnosis::Level::kWarning,
                        .found = std::move(one.found),
                        .details = std::move(one.details),
                        .remedy = std::move(one.remedy)});
  }
  return findings;
}

/// The URL as a job names it: braces may make several places of it.
Result<std::vector<Finding>> check_url(const std::string& url,
                                       const StoreOptions& options,
                                       CommandContext& context) {
  const auto places = places_of(std::span(&url, 1), Selection());
  if (!places) return std::vector<Finding>{out_of_reach(places.error())};
  LEAT_TRY(std::vector<Finding> findings,
           check_access(places->front().url, options, context));
  for (const SourcePlace& place : *places) {
    findings.push_back(check_reach(place, options, context));
  }
  return findings;
}

void print(const Finding& finding, std::ostream& out) {
  const std::string_view mark = !finding.is_good     ? "BAD"
                                : finding.is_warning ? "warn"
                                                     : "ok";
  out << fmt::format("{:<4} {:<11} {}\n", mark, finding.check, finding.found);
  for (const std::string& line : finding.details) {
    out << fmt::format("{:<16}    {}\n", "", line);
  }
  if (!finding.remedy.empty()) {
    out << fmt::format("{:<16} -> {}\n", "", finding.remedy);
  }
}

Result<void> run_doctor(const std::string& url, const StoreFlags& store,
                        bool is_json, CommandContext& context) {
  std::vector<Finding> findings = check_machine(context.env);
  if (!url.empty()) {
    // A store that is far or down takes seconds to say so.
    ProgressLine line(context);
    line.show("asking " + url);
    LEAT_TRY(auto found, check_url(url, store.store_options(), context));
    findings.insert(findings.end(), std::move_iterator(found.begin()),
                    std::move_iterator(found.end()));
  }
  bool is_good = true;
  nlohmann::ordered_json report = nlohmann::json::array();
  for (const Finding& finding : findings) {
    is_good = is_good && finding.is_good;
    if (is_json) {
      report.push_back({{"check", finding.check},
                        {"good", finding.is_good},
                        {"warning", finding.is_warning},
                        {"found", finding.found},
                        {"details", finding.details},
                        {"remedy", finding.remedy}});
      continue;
    }
    print(finding, context.out);
  }
  if (is_json) context.out << dump_json(report) << '\n';
  if (is_good) return {};
  return unavailable("something needs fixing; see above");
}

std::function<Result<void>(CommandContext&)> add_doctor(CLI::App& app) {
  struct Flags {
    std::string url;
    StoreFlags store;
    bool is_json = false;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("URL", flags->url, "a dataset to reach");
  flags->store.add_to(app);
  app.add_flag("--json", flags->is_json, "print one JSON list");
  app.footer("Example:\n  leat doctor s3://bucket/train");
  return [flags](CommandContext& context) {
    return run_doctor(flags->url, flags->store, flags->is_json, context);
  };
}

}  // namespace

const Command kDoctorCommand{
    .name = "doctor",
    .summary = "check limits, launcher, credentials and reach",
    .add = &add_doctor,
};

}  // namespace leat
