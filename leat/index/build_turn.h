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
  /// The time that the job's first node gets to announce that it builds.
  Nanoseconds sign = std::chrono::seconds(15);
  /// A sign that was not renewed for this long was left by a dead process.
  Nanoseconds sign_life = std::chrono::seconds(60);
  /// Between two looks at a bucket; a tenth of it for this machine's files.
  Nanoseconds pace = std::chrono::seconds(1);
};

/// The result of looking for a catalogue.
enum class Sight : std::uint8_t {
  kThere,   ///< It can be opened.
  kComing,  ///< Another process is making it.
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

/// True if a job of several nodes shares its catalogue: its processes are on
/// more than one node, as far as the launcher tells.
bool spans_nodes(const Launch& launch);

/// True on the node of rank 0, if ranks are numbered node by node.
bool is_on_first_node(const Launch& launch);

}  // namespace leat
