#include "leat/agent/wire/job_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "leat/agent/wire/job_trace_json.h"

namespace leat {
namespace {

using Json = nlohmann::ordered_json;

template <class Owner>
struct Key {
  const char* name;
  std::uint64_t Owner::*field;
  bool is_time;
};

constexpr std::array kOfStep = {
    Key<TraceStep>{"epoch", &TraceStep::epoch, false},
    Key<TraceStep>{"step", &TraceStep::step, false},
    Key<TraceStep>{"size", &TraceStep::size, false},
    Key<TraceStep>{"ready", &TraceStep::ready, true},
    Key<TraceStep>{"asked", &TraceStep::asked, true},
    Key<TraceStep>{"given", &TraceStep::given, true}};

// A sample is a row of numbers in this order: a line has to hold many.
constexpr std::array kOfSample = {
    Key<TraceSample>{"id", &TraceSample::id, false},
    Key<TraceSample>{"reserved", &TraceSample::reserved, true},
    Key<TraceSample>{"fetched", &TraceSample::fetched, true},
    Key<TraceSample>{"decoded", &TraceSample::decoded, true},
    Key<TraceSample>{"finished", &TraceSample::finished, true},
    Key<TraceSample>{"cache_begin", &TraceSample::cache_begin, true},
    Key<TraceSample>{"cache_end", &TraceSample::cache_end, true}};

Error wrong(const std::string& what) {
  return {ErrorCode::kInvalidArgument, "the trace of a job: " + what};
}

template <class Owner>
Json number_of(const Owner& owner, const Key<Owner>& key) {
  const std::uint64_t value = owner.*key.field;
  return key.is_time ? std::min(value, kMostTraceTime) : value;
}

template <class Owner>
Result<void> read_number(const Json& json, const Key<Owner>& key,
                         Owner& owner) {
  if (!json.is_number_unsigned()) {
    return wrong(std::string(key.name) + " must be a whole number");
  }
  const auto value = json.get<std::uint64_t>();
  if (key.is_time && value > kMostTraceTime) {
    return wrong(std::string(key.name) + " is past any time of a trace");
  }
  owner.*key.field = value;
  return {};
}

Json json_of(const TraceSample& sample) {
  Json row = Json::array();
  for (const auto& key : kOfSample) row.push_back(number_of(sample, key));
  return row;
}

Json json_of(const TraceStep& step) {
  Json object = Json::object();
  for (const auto& key : kOfStep) object[key.name] = number_of(step, key);
  object["samples"] = Json::array();
  const std::size_t count =
      std::min(step.samples.size(), TraceStep::kMostSamples);
  for (std::size_t i = 0; i < count; ++i) {
    object["samples"].push_back(json_of(step.samples[i]));
  }
  return object;
}

Result<TraceSample> read_sample(const Json& json) {
  if (!json.is_array() || json.size() != kOfSample.size()) {
    return wrong("a sample must be a row of numbers");
  }
  TraceSample sample;
  for (std::size_t i = 0; i < kOfSample.size(); ++i) {
    LEAT_TRY_VOID(read_number(json[i], kOfSample[i], sample));
  }
  return sample;
}

Result<const Json*> list_in(const Json& object, const char* name,
                            std::size_t most) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array() || found->size() > most) {
    return wrong(std::string(name) + " must be a list of at most " +
                 std::to_string(most));
  }
  return &*found;
}

Result<TraceStep> read_step(const Json& json) {
  if (!json.is_object()) return wrong("a step must be an object");
  TraceStep step;
  for (const auto& key : kOfStep) {
    const auto found = json.find(key.name);
    if (found == json.end())
      return wrong(std::string(key.name) + " is missing");
    LEAT_TRY_VOID(read_number(*found, key, step));
  }
  LEAT_TRY(const Json* samples,
           list_in(json, "samples", TraceStep::kMostSamples));
  for (const Json& sample : *samples) {
    LEAT_TRY(step.samples.emplace_back(), read_sample(sample));
  }
  return step;
}

}  // namespace

Json json_of(const JobTrace& trace) {
  Json steps = Json::array();
  const std::size_t count = std::min(trace.steps.size(), JobTrace::kMostSteps);
  for (std::size_t i = trace.steps.size() - count; i < trace.steps.size();
       ++i) {
    steps.push_back(json_of(trace.steps[i]));
  }
  return {{"begin_seconds", trace.begin_seconds}, {"steps", std::move(steps)}};
}

Result<JobTrace> read_trace(const Json& json) {
  if (!json.is_object()) return wrong("it is no object");
  JobTrace trace;
  const auto begin = json.find("begin_seconds");
  if (begin == json.end() || !begin->is_number()) {
    return wrong("begin_seconds must be a number");
  }
  trace.begin_seconds = begin->get<double>();
  if (!std::isfinite(trace.begin_seconds) || trace.begin_seconds < 0) {
    return wrong("begin_seconds must be at least 0");
  }
  LEAT_TRY(const Json* steps, list_in(json, "steps", JobTrace::kMostSteps));
  for (const Json& step : *steps) {
    LEAT_TRY(trace.steps.emplace_back(), read_step(step));
  }
  return trace;
}

std::string to_json(const JobTrace& trace) { return json_of(trace).dump(); }

}  // namespace leat
