// The view of a node in `leat top`: text for a terminal.
#pragma once
#include <cstddef>
#include <string>

#include "leat/agent/node_view.h"

namespace leat {

struct ScreenSize {
  std::size_t columns = 0;  ///< Lines are cut there; 0: they are not.
  std::size_t rows = 0;     ///< As many lines at most; 0: all.
};

/// The node, its jobs and as many of its last decisions, the latest first, as
/// there is room for. Whole lines of UTF-8; a table of jobs that is too long
/// says how many it leaves out. Strings of `view` must be public_text().
std::string top_screen(const NodeView& view, const ScreenSize& size);

}  // namespace leat
