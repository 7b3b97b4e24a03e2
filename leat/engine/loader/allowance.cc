#include "leat/engine/loader/allowance.h"

#include <algorithm>
#include <utility>

namespace leat {
namespace {

/// More requests than usual help where latency is long and samples are small;
/// more threads help where the user's functions wait.
constexpr std::size_t kTimes = 4;
/// More threads win a larger share of cores that other programs use too, if no
/// agent divides the cores and no other rank of this job uses them.
constexpr std::size_t kTimesBesideOthers = 2;

std::size_t allowed_of(std::optional<std::size_t> share, std::size_t otherwise,
                       std::size_t most) {
  return share ? std::clamp<std::size_t>(*share, 1, most) : otherwise;
}

}  // namespace

Allowance::Allowance(const RankLimits& usual, std::uint64_t open_files,
                     bool calls_users)
    : usual_(usual), now_(usual) {
  const bool may_add_threads = !usual.threads_were_asked;
  std::size_t threads = usual.threads;
  if (may_add_threads && calls_users) threads *= kTimes;
  most_.threads = threads;
  most_.in_flight = usual.in_flight;
  if (!usual.in_flight_was_asked) {
    const std::uint64_t files = open_files / 2 / usual.local_ranks;
    most_.in_flight = std::max<std::uint64_t>(
        usual.in_flight,
        std::min<std::uint64_t>(kTimes * usual.in_flight, files));
  }
  most_threads_alone_ = threads;
  if (may_add_threads && usual.local_ranks == 1) {
    most_threads_alone_ = std::max(threads, kTimesBesideOthers * usual.threads);
  }
}

void Allowance::add_tiers(std::optional<std::uint64_t> ram_bytes,
                          std::optional<std::uint64_t> disk_bytes) {
  most_.ram_bytes = ram_bytes;
  most_.disk_bytes = disk_bytes;
}

Settings Allowance::most_settings() const {
  // Without a tuner the usual number is used.
  const std::size_t threads = chosen_ ? most_threads_alone_ : usual_.threads;
  const std::size_t in_flight = chosen_ ? *most_.in_flight : usual_.in_flight;
  return {
      .threads = allowed_of(allowed_.threads, threads, *most_.threads),
      .in_flight = allowed_of(allowed_.in_flight, in_flight, *most_.in_flight)};
}

Allowance::InForce Allowance::settle() {
  Settings now = most_settings();
  if (chosen_) {
    now.threads = std::min(now.threads, chosen_->threads);
    now.in_flight = std::min(now.in_flight, chosen_->in_flight);
    now.lookahead = chosen_->lookahead;
    now.part_bytes = chosen_->part_bytes;
  }
  now_.threads = now.threads;
  now_.in_flight = now.in_flight;
  return {.settings = now,
          .bytes_per_second = allowed_.bytes_per_second,
          .ram = settle_tier(&Share::ram_bytes),
          .disk = settle_tier(&Share::disk_bytes)};
}

std::optional<Allowance::InForce::Tier> Allowance::settle_tier(
    Bytes Share::*tier) {
  const Bytes most = most_.*tier;
  if (!most) return std::nullopt;
  Bytes wanted = allowed_.*tier;
  if (wanted) wanted = std::min(*wanted, *most);
  const Bytes before = std::exchange(tiers_.*tier, wanted);
  if (wanted == before) return std::nullopt;
  return InForce::Tier{.bound_bytes = wanted,
                       .before_bytes = before.value_or(*most),
                       .after_bytes = wanted.value_or(*most)};
}

}  // namespace leat
