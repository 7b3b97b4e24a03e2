#include "leat/engine/loader/control.h"

#include <chrono>
#include <utility>

#include "leat/runtime/log.h"

namespace leat {
namespace {

/// The number of changes to the cache's bounds that are kept for reading.
constexpr std::size_t kKeptShares = 1000;

}  // namespace

Control::Control(Allowance allowance, TimePoint opened_at)
    : opened_at_(opened_at), allowance_(std::move(allowance)) {}

RankLimits Control::now() const {
  const MutexLock lock(mutex_);
  return allowance_.now();
}

RankLimits Control::usual() const {
  const MutexLock lock(mutex_);
  return allowance_.usual();
}

Share Control::most() const {
  const MutexLock lock(mutex_);
  return allowance_.most();
}

std::size_t Control::most_threads() const {
  const MutexLock lock(mutex_);
  return allowance_.most_threads();
}

void Control::allow(const Share& share) {
  const MutexLock lock(mutex_);
  allowance_.allow(share);
}

void Control::choose(const Settings& settings) {
  const MutexLock lock(mutex_);
  allowance_.choose(settings);
}

void Control::apply(const CarryOut& carry_out) {
  const MutexLock one_by_one(applying_);
  Allowance::InForce now;
  {
    const MutexLock lock(mutex_);
    now = allowance_.settle();
    note(Setting::kRamBytes, now.ram);
    note(Setting::kDiskBytes, now.disk);
  }
  carry_out(now);
}

void Control::note(Setting setting,
                   const std::optional<Allowance::InForce::Tier>& tier) {
  if (!tier || tier->before_bytes == tier->after_bytes) return;
  tier_decisions_.push_back(
      {.at_seconds =
           std::chrono::duration<double>(SteadyClock().now() - opened_at_)
               .count(),
       .job = {},
       .setting = setting,
       .before = static_cast<double>(tier->before_bytes),
       .after = static_cast<double>(tier->after_bytes),
       .reason = "its share of what the caches of this node may hold",
       .expected_gain = {},
       .found_gain = {}});
  if (tier_decisions_.size() > kKeptShares) tier_decisions_.pop_front();
  log_debug("share: " + to_string(tier_decisions_.back()));
}

Result<void> Control::begin_tuning(LoaderTuning::Hooks hooks,
                                   const std::string& trace) {
  LEAT_TRY(tuning_, LoaderTuning::begin(std::move(hooks), trace));
  return {};
}

void Control::add_bounds(Observation& seen) const {
  const MutexLock lock(mutex_);
  const Settings most = allowance_.most_settings();
  const RankLimits& now = allowance_.now();
  seen.most_threads = most.threads;
  seen.most_in_flight = most.in_flight;
  seen.cores = static_cast<double>(now.cores) / now.local_ranks;
  seen.most_bytes_per_second =
      allowance_.allowed().bytes_per_second.value_or(0);
  seen.memory_bytes = now.memory_bytes;
}

std::optional<Explanation> Control::explanation() const {
  if (tuning_ == nullptr) return std::nullopt;
  return tuning_->explanation();
}

std::vector<Decision> Control::decisions() const {
  std::vector<Decision> all;
  if (tuning_ != nullptr) all = tuning_->decisions();
  const MutexLock lock(mutex_);
  all.insert(all.end(), tier_decisions_.begin(), tier_decisions_.end());
  return all;
}

void Control::join_agent(AgentLinkOptions link) {
  link.set_pace = [this](const Pace& said) { set_pace(said); };
  link.elsewhere = [this] { return pace_elsewhere(); };
  link_ = open_agent_link(std::move(link));
}

std::optional<Pace> Control::pace() const {
  const MutexLock lock(mutex_);
  return pace_;
}

void Control::set_pace(const Pace& pace) {
  const MutexLock lock(mutex_);
  pace_ = pace;
}

std::optional<Pace> Control::pace_elsewhere() const {
  const MutexLock lock(mutex_);
  return elsewhere_;
}

void Control::set_pace_elsewhere(const Pace& pace) {
  const MutexLock lock(mutex_);
  elsewhere_ = pace;
}

void Control::end() {
  link_.reset();
  if (tuning_ != nullptr) tuning_->end();
}

}  // namespace leat
