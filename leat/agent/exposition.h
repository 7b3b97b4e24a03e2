// An agent's metrics of its node, for Prometheus.
#pragma once
#include <string>

#include "leat/agent/node_view.h"

namespace leat {

/// The node and its jobs in Prometheus's text format, version 0.0.4, with a
/// final line feed. The strings of `view` are made public_text() and escaped.
/// An unknown value, such as a rate not yet predicted, has no line.
std::string exposition(const NodeView& view);

/// docs/reference/agent-metrics.md: every metric, its labels and its help.
std::string agent_metrics_page();

}  // namespace leat
