// The messages between loaders and the agent of their node: JSON, one object a
// line, over a unix stream socket. Version 1.
//
//   loader -> agent   {"leat":1,"register":{...}}   first, once
//                     {"rates":{...},"elsewhere":{...}}
//                                                   about once a second
//                     {"trace":{...}}               with it, while it is asked
//   agent -> loader   {"share":{...},"pace":{...}}  whenever it changes
//                     {"trace":true}                about once a second, while
//                                                   somebody looks at the job
//                     {"error":"..."}               before it hangs up
//
// No message names another job: a loader speaks only for itself. The agents of
// a job's nodes communicate through its ranks (python/leat/_job/_pace.py):
// "pace" is the pace of one rank as known here, and "elsewhere" came from the
// other nodes. Both may be missing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/agent/wire/job_counters.h"
#include "leat/agent/wire/job_trace.h"
#include "leat/base/result.h"
#include "leat/tune/pace.h"
#include "leat/tune/share.h"

namespace leat {

inline constexpr std::size_t kMostLineBytes = 16384;
inline constexpr std::size_t kMostNameBytes = 512;
inline constexpr std::size_t kMostStalls = 16;
inline constexpr std::size_t kMostBuckets = 16;

/// The identity of a loader. Texts are cut to kMostNameBytes.
struct WireRegistration {
  std::string job;      ///< The same on all ranks of one job.
  std::string name;     ///< For people.
  std::string dataset;  ///< A URL without credentials.
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t local_ranks = 1;
  std::uint64_t threads = 1;    ///< The most its user allows this rank.
  std::uint64_t in_flight = 1;  ///< The same.
  std::uint64_t ram_bytes = 0;  ///< For its cache, likewise; 0: no such tier.
  std::uint64_t disk_bytes = 0;
  std::uint64_t dataset_samples = 0;
  std::uint64_t epochs = 0;  ///< Planned; 0, or missing: unknown.
  /// Jobs of one user with the same value share a cache; empty, or missing: its
  /// own.
  std::string shared_cache;
  /// The buckets it reads, such as "s3://photos"; may be missing. Only
  /// kMostBuckets are sent.
  std::vector<std::string> buckets;
};

/// engine/loader_totals.h in seconds: totals, which only grow, and present
/// values. They complement job_counters(), for the code that divides shares.
struct WireRates {
  double elapsed_seconds = 0;
  double samples = 0;
  double epochs = 0;  ///< Begun; 0, or missing: unknown.
  double training_seconds = 0;
  double reads = 0;  ///< Finished ones; counters::kGets were sent.
  double read_seconds = 0;
  double tasks = 0;
  double busy_seconds = 0;
  double threads = 1;
  double in_flight = 1;
  /// A required counter that is absent here is sent as 0.
  JobTotals totals = {};
  /// Older loaders do not send the next three. The bytes of a sample in its
  /// cache, if some are kept decoded; 0 or missing: as many as are read for it.
  std::optional<double> kept_bytes;
  /// Thread seconds that a hit saves; 0 likewise.
  std::optional<double> saved_seconds;
  std::optional<double> decoded_hits;  ///< Samples whose hits saved that.
  /// Seconds by cause, which add up to `wait_seconds`. At most kMostStalls.
  std::map<std::string, double> stalls;
  std::optional<Pace> elsewhere;  ///< The pace of one rank.
};

/// A message from a loader.
struct LoaderMessage {
  std::optional<WireRegistration> registration;
  std::optional<WireRates> rates;
  std::optional<JobTrace> trace;
};
/// A message from the agent.
struct AgentMessage {
  std::optional<Share> share;
  std::optional<Pace> pace;  ///< The pace of one rank; sent only with a share.
  bool wants_trace = false;
  std::string error;
};

/// One line each, with its end.
std::string line_of(const WireRegistration& registration);
std::string line_of(const WireRates& rates);
std::string line_of(const Share& share, const std::optional<Pace>& pace = {});
std::string line_of(const JobTrace& trace);
std::string trace_request_line();
std::string error_line(std::string_view error);

/// Read a line without its end. Any bytes give a message or an error; numbers
/// are finite and at least 0.
///
/// Errors:
///   kInvalidArgument  not JSON, not an object, another version, a value of
///                     another type: says which key
Result<LoaderMessage> parse_loader_line(std::string_view line);
Result<AgentMessage> parse_agent_line(std::string_view line);

/// Splits a stream into lines. Holds at most kMostLineBytes.
class LineReader {
 public:
  /// Takes bytes as they arrive. Errors: kInvalidArgument for a longer line.
  Result<void> add(std::string_view bytes);
  /// The next whole line, without its end; nullopt until there is one.
  std::optional<std::string> next();

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
};

}  // namespace leat
