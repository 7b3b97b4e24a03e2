// Draws the steps of a loader, into a file and for whoever looks on.
#pragma once
#include <memory>
#include <string>

#include "leat/base/result.h"
#include "leat/engine/recent_trace.h"
#include "leat/engine/trace.h"
#include "leat/pipeline/batch_work.h"

namespace leat {

/// The trace that a user asked for and the one that an agent's page shows.
///
/// Threads: see_recent() any; the rest one at a time.
class StepTrace {
 public:
  /// An empty `file`: only who looks on sees anything. Errors: as Trace::open()
  Result<void> open(const std::string& file, std::uint32_t rank);
  void close() { file_.reset(); }
  /// A batch was given after a wait.
  void add(const BatchWork& work, Interval wait);
  /// As Trace::end_epoch().
  void end_epoch(TimePoint asked);
  /// As RecentTrace::see().
  JobTrace see_recent() { return recent_.see(); }

 private:
  std::unique_ptr<Trace> file_;  // Null: nobody asked for one.
  RecentTrace recent_;
};

}  // namespace leat
