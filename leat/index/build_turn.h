// Lets the many processes that want to make a catalogue take turns.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/index/catalogue_lock.h"
#include "leat/runtime/launcher.h"

namespace leat {

/// How long one process waits for another. Each time is long against the
/// awaited event, and short against a listing made twice.
struct TurnTimes {
  /// The head start of local rank 0 over the other ranks of its node.
  Nanoseconds head_start = std::chrono::seconds(3);
  /// Between two looks at this machine's files.
  Nanoseconds pace = std::chrono::milliseconds(100);
};

/// The result of looking for a catalogue.
enum class Sight : std::uint8_t {
  kThere,   ///< It can be opened.
  kNothing  ///< No process is known to be making it.
};

/// Waits until the catalogue of `path` exists (then nullopt), or until it is
/// this process's turn to make it: then returns the lock. Blocks.
///
/// The first process that gets the lock builds, where local rank 0 has a head
/// start; a waiting one takes over when the builder dies or fails.
///
/// Errors: those of `look` and CatalogueLock::try_lock(); kCancelled
Result<std::optional<CatalogueLock>> wait_for_turn(
    const std::string& path, const Launch& launch, const TurnTimes& times,
    const std::function<Result<Sight>()>& look, const std::stop_token& stop);

}  // namespace leat
