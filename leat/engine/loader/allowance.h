// The bounds of one rank: asked for, allowed, chosen, in force.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "leat/engine/rank_limits.h"
#include "leat/tune/share.h"
#include "leat/tune/tuner.h"

namespace leat {

/// Computes the bounds of a rank. The user's options set the usual amounts and,
/// where they leave something open, the node sets how much more is possible.
/// The agent allows a part of that, and the tuner chooses within it.
///
/// Does no I/O. Threads: one at a time.
class Allowance {
 public:
  /// The bounds in force from now on; lists only tiers whose bounds changed.
  struct InForce {
    /// A tier's new bound; nullopt: the whole tier.
    struct Tier {
      std::optional<std::uint64_t> bound_bytes;
      std::uint64_t before_bytes = 0;
      std::uint64_t after_bytes = 0;
    };
    Settings settings;
    std::optional<std::uint64_t> bytes_per_second;
    std::optional<Tier> ram;  ///< Nullopt: no change.
    std::optional<Tier> disk;
  };

  /// `usual` holds the amounts that the options come to. Requests beyond them
  /// need files, of which this process may open `open_files`. The user's
  /// functions do not always need a core, so extra threads may help.
  Allowance(const RankLimits& usual, std::uint64_t open_files,
            bool calls_users);

  /// Adds the existing tiers, with all that this rank may write to each.
  void add_tiers(std::optional<std::uint64_t> ram_bytes,
                 std::optional<std::uint64_t> disk_bytes);

  const RankLimits& usual() const { return usual_; }
  /// `usual` with the threads and requests that are in force.
  const RankLimits& now() const { return now_; }
  /// The most that allow() gives.
  const Share& most() const { return most_; }
  /// The most threads that may ever work: without an agent, a tuner may choose
  /// more than allow() gives.
  std::size_t most_threads() const { return most_threads_alone_; }

  void allow(const Share& share) { allowed_ = share; }
  void choose(const Settings& settings) { chosen_ = settings; }
  const Share& allowed() const { return allowed_; }

  /// The most that may be chosen now.
  Settings most_settings() const;
  /// Applies what is allowed and chosen.
  InForce settle();

 private:
  using Bytes = std::optional<std::uint64_t>;
  std::optional<InForce::Tier> settle_tier(Bytes Share::*tier);

  RankLimits usual_;
  RankLimits now_;
  Share most_;
  std::size_t most_threads_alone_ = 1;
  Share allowed_;
  std::optional<Settings> chosen_;  // None if nobody chooses.
  Share tiers_;                     // Their bounds now in force.
};

}  // namespace leat
