// Reading a socket, and when its bytes arrived.
#pragma once
#include <sys/types.h>

#include <span>

#include "leat/base/clock.h"

namespace leat {

/// Asks the kernel to note when bytes arrive at `socket`. Without effect where
/// it cannot.
void note_arrivals(int socket);

struct Received {
  ssize_t bytes = -1;  ///< As recv() has it: 0 at the end, -1 with errno.
  /// When the last of them arrived; at the latest, when they were read.
  TimePoint at{};
};

/// recv() without waiting.
///
/// A loaded server reads late. A delay that counts from the arrival and not
/// from the reading is as long as it was asked for all the same.
Received receive(int socket, std::span<char> into);

}  // namespace leat
