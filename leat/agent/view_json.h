// An agent's view of its node, as JSON: docs/reference/agent-view.md.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "leat/agent/node_view.h"
#include "leat/agent/wire/job_trace.h"
#include "leat/base/result.h"

namespace leat {

/// The parts that a reader has already, which need not be sent again.
struct ViewSince {
  /// Sends points of the history later than this; Unix time.
  double points_after = -std::numeric_limits<double>::infinity();
  /// Sends decisions with a larger number.
  std::uint64_t decisions_after = 0;
};

/// One object, on one line. It is valid JSON in UTF-8 for any strings in
/// `view`, which are made public_text(). A number that is not finite is null.
std::string view_json(const NodeView& view, const ViewSince& since = {});

/// The same for a trace: docs/reference/agent-view.md.
std::string trace_json(std::string_view job, const JobTrace& trace);

/// Reads the view in `text`, which is untrusted. A member that is missing, null
/// or of another type keeps the value of a new NodeView; impossible counts are
/// 0. Strings are made public_text(). Decision::at_seconds is left out, since
/// view_json() does not write it.
///
/// Errors:
///   kCorrupt  no JSON, or not of the format that view_json() writes
Result<NodeView> read_view_json(std::string_view text);

}  // namespace leat
