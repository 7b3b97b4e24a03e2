// The bounds of one rank: asked for, allowed, chosen, in force.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "leat/engine/rank_limits.h"
#include "leat/tune/share.h"
#include "leat/tune/tuner.h"

namespace leat {

/// The bounds of a rank and what follows from them. The user's options say what
/// is usual, and, where they leave something open, the node says how much more
/// there can be. The agent allows a part of that; the tuner chooses within it.
///
/// Pure. Threads: one at a time.
class Allowance {
 public:
  /// A rank goes by this from now on; its tiers hear of bounds that changed.
  struct InForce {
    /// A tier's new bound; nullopt: all of it.
    struct Tier {
      std::optional<std::uint64_t> bound_bytes;
      std::uint64_t before_bytes = 0;
      std::uint64_t after_bytes = 0;
    };
    Settings settings;
    std::optional<std::uint64_t> bytes_per_second;
    std::optional<Tier> ram;  ///< Nullopt: as before.
    std::optional<Tier> disk;
  };

  /// `usual` is what the options come to. More requests than these need files,
  /// of which this process may open `open_files`. Functions of the user's wait
  /// for other things than a core, so more threads than cores may help.
  Allowance(const RankLimits& usual, std::uint64_t open_files,
            bool calls_users);

  /// The tiers that there are, and all that this rank may write to each.
  void add_tiers(std::optional<std::uint64_t> ram_bytes,
                 std::optional<std::uint64_t> disk_bytes);

  const RankLimits& usual() const { return usual_; }
  /// `usual` with the threads and requests that are in force.
  const RankLimits& now() const { return now_; }
  /// The most that allow() gives.
  const Share& most() const { return most_; }
  /// Threads that may ever work: a tuner without an agent may choose more than
  /// allow() gives.
  std::size_t most_threads() const { return most_threads_alone_; }

  void allow(const Share& share) { allowed_ = share; }
  void choose(const Settings& settings) { chosen_ = settings; }
  const Share& allowed() const { return allowed_; }

  /// The most that may be chosen now.
  Settings most_settings() const;
  /// Brings into force what is allowed and chosen.
  InForce settle();

 private:
  using Bytes = std::optional<std::uint64_t>;
  std::optional<InForce::Tier> settle_tier(Bytes Share::*tier);

  RankLimits usual_;
  RankLimits now_;
  Share most_;
  std::size_t most_threads_alone_ = 1;
  Share allowed_;
  std::optional<Settings> chosen_;  // None where nobody chooses.
  Share tiers_;                     // Their bounds in force.
};

}  // namespace leat
