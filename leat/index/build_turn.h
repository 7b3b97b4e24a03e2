// Takes turns among the many processes that want to make a catalogue.
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

/// How long one waits for another. Each is long against what it waits for, and
/// short against a listing that was made twice.
struct TurnTimes {
  /// The head start of local rank 0 before the other ranks of its node build.
  Nanoseconds head_start = std::chrono::seconds(3);
  /// The time that the job's first node gets to say that it builds.
  Nanoseconds sign = std::chrono::seconds(15);
  /// A sign that was not renewed for so long was left by the dead.
  Nanoseconds sign_life = std::chrono::seconds(60);
  /// Between two looks at a bucket; a tenth of it at this machine's files.
  Nanoseconds pace = std::chrono::seconds(1);
};

/// The result of a look at the places of a catalogue.
enum class Sight : std::uint8_t {
  kThere,   ///< It can be opened.
  kComing,  ///< Somebody elsewhere is at it.
  kNothing  ///< Nobody is known to be.
};

/// Waits until the catalogue of `path` is there (then nullopt), or until it is
/// this process's turn to make it: then it holds the lock. Blocks.
///
/// The first process that gets the lock builds, local rank 0 with a head start;
/// one that waits for it takes over when the builder dies or fails.
///
/// Errors: those of `look` and CatalogueLock::try_lock(); kCancelled
Result<std::optional<CatalogueLock>> wait_for_turn(
    const std::string& path, const Launch& launch, const TurnTimes& times,
    const std::function<Result<Sight>()>& look, const std::stop_token& stop);

/// True if a job of several nodes shares its catalogue: its processes are on
/// more than one node, as far as the launcher says.
bool spans_nodes(const Launch& launch);

/// True on the node of rank 0, if ranks are numbered node by node.
bool is_on_first_node(const Launch& launch);

}  // namespace leat
