// The engine's log as Python sees it.
#pragma once

namespace leat {

/// Hands what was logged since the last call to Python's `logging`, through
/// leat._log. The engine's own threads never take the GIL for it: lines wait
/// until a thread of Python's is in leat. Throws what ends a program, such as
/// KeyboardInterrupt, and keeps the other lines then. REQUIRES: the GIL is
/// held.
void deliver_log();

}  // namespace leat
