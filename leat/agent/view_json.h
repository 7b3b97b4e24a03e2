// What an agent shows of its node, as JSON: docs/reference/agent-view.md.
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include "leat/agent/node_view.h"

namespace leat {

/// What a reader has already, so that it is sent no second time.
struct ViewSince {
  /// Points of the history that are later than this; Unix time.
  double points_after = -std::numeric_limits<double>::infinity();
  /// Decisions with a larger number.
  std::uint64_t decisions_after = 0;
};

/// One object, on one line. Whatever the strings of `view` hold, it is valid
/// JSON in UTF-8, and they come as shown_text(). A number that is not finite is
/// null.
std::string view_json(const NodeView& view, const ViewSince& since = {});

}  // namespace leat
