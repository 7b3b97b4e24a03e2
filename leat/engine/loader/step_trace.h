// Draws the steps of a loader into a file, and for viewers.
#pragma once
#include <memory>
#include <string>

#include "leat/base/result.h"
#include "leat/engine/recent_trace.h"
#include "leat/engine/trace.h"
#include "leat/pipeline/batch_work.h"

namespace leat {

/// Draws the trace that a user asked for and the one on an agent's page.
///
/// Threads: see_recent() any; the rest one at a time.
class StepTrace {
 public:
  /// With an empty `file`, only viewers see the trace. Errors: as Trace::open()
  Result<void> open(const std::string& file, std::uint32_t rank);
  void close() { file_.reset(); }
  /// A batch was delivered after a wait.
  void add(const BatchWork& work, Interval wait);
  /// See Trace::end_epoch().
  void end_epoch(TimePoint asked);
  /// See RecentTrace::see().
  JobTrace see_recent() { return recent_.see(); }

 private:
  std::unique_ptr<Trace> file_;  // Null: no user asked for one.
  RecentTrace recent_;
};

}  // namespace leat
