// The report of `leat profile`: one JSON object, read again by `leat what-if`
// and `leat recommend`. docs/reference/profile-report.md describes it.
#pragma once
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/profile/step_model.h"
#include "leat/profile/step_parts.h"
#include "leat/profiler/session.h"

namespace leat {

/// How the training was profiled, as the user asked for it.
struct ProfileSettings {
  std::vector<std::string> command;
  std::size_t nodes = 1;
  std::uint32_t processes = 1;  ///< Processes on a node.
  std::uint32_t steps = 0;
  std::uint32_t warmup = 0;
  std::uint32_t repeats = 0;
  std::uint32_t replayed = 0;
  double cores = 0;  ///< That this process may use.
};

nlohmann::ordered_json profile_json(const ProfileSettings& settings,
                                    const TrainingTrials& trials,
                                    const StepParts& split);

/// A profile that came to nothing, and why.
nlohmann::ordered_json failed_profile_json(const ProfileSettings& settings,
                                           const std::string& why);

/// Seconds to three digits, in the unit that fits: "62.2 ms", "940 us".
std::string time_text(double seconds);

/// Parts of a step, with intervals, and the reading of a timer in the script.
void print_profile(const nlohmann::ordered_json& report, std::ostream& out);

/// Reads a report from a file of at most 64 MiB, which somebody may have
/// changed.
///
/// Errors:
///   kNotFound         no such file
///   kInvalidArgument  it is not a report, or one of another version
Result<nlohmann::ordered_json> read_profile_report(const std::string& path);

/// The step that a report is about.
///
/// Errors:
///   kInvalidArgument  the profile failed, or a figure is missing or invalid:
///                     says which
Result<MeasuredStep> measured_step(const nlohmann::ordered_json& report);

/// Curves and removals, under the keys "curves" and "removals".
nlohmann::ordered_json what_if_json(const StepModel& model);

/// Predicts a step with several knobs turned at once, each given as
/// "NAME=NUMBER".
///
/// Errors:
///   kInvalidArgument  an entry is not of that form, or as `turn` says
Result<nlohmann::ordered_json> asked_json(const StepModel& model,
                                          std::span<const std::string> asked);

/// Prints each removal as a line of words, then the curves, then the step that
/// was asked about, if any.
void print_what_if(const nlohmann::ordered_json& what_if, std::ostream& out);

}  // namespace leat
