// The change that a tuner would try next, from its model and the bounds of
// that.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "leat/base/units.h"
#include "leat/tune/tuner.h"

namespace leat {
namespace {

// More than the model needs, since latencies vary.
constexpr double kRequestsMargin = 1.3;
constexpr double kTrainingMargin = 1.1;
// Looking ahead pays where training waits though nothing is full.
constexpr double kWaitsForLookahead = 0.15;
// The model has seen one point. A change takes at most this many
// times its requests.
constexpr double kLongestJump = 16;
// This many bytes in flight fill most links. More of them may only take the
// link from reads that are needed first. So there are no more before training
// has its first batch, and then they rise step by step.
constexpr double kFullLinkBytes = 128 << 20;
constexpr double kLongestJumpBeyond = 2;
constexpr double kProbe = 1.5;

// The share of a core that a thread has. With less, other programs use the
// cores too, or tasks wait for something else. Then more threads than cores may
// get more of the cores.
constexpr double kWholeCore = 0.8;

// Before reads of two lengths were seen, a change makes parts at most this many
// times shorter.
constexpr double kMostCut = 4;
// The share of the allowed requests. If more are in flight, shorter parts would
// not be many more.
constexpr double kSpare = 0.6;
// If not all requests are used, the lookahead may be too small, and not the
// number of requests.
constexpr double kAllUsed = 0.9;
// More requests cost money: parts are changed for no less, so not where
// training waits for less of its time, which is all there is to gain.
constexpr double kLeastPartGain = 0.1;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

std::size_t up_to(double wanted, std::size_t most) {
  if (!(wanted >= 1)) return 1;
  if (wanted >= static_cast<double>(most))
    return std::max<std::size_t>(1, most);
  return static_cast<std::size_t>(std::ceil(wanted));
}

struct PartChoice {
  std::uint64_t part_bytes = 0;
  std::optional<double> gain = std::nullopt;  ///< None: it is a probe.
};

/// Keeps the length of parts if another one gains too little.
PartChoice by_model(const ReadModel& model, const PartLimits& limits,
                    std::uint64_t part, double read) {
  const std::uint64_t best = best_part(model, limits, part, read);
  const double is = bytes_a_second(model, limits, read);
  const double will = bytes_a_second(
      model, limits,
      read * static_cast<double>(best) / static_cast<double>(part));
  if (is <= 0 || will < is * (1 + kLeastPartGain)) return {.part_bytes = part};
  return {.part_bytes = best, .gain = will / is - 1};
}

/// Parts become shorter by as much as there are more requests to use, but by no
/// more than kMostCut.
std::uint64_t probe(const PartLimits& limits, const StageRates& rates,
                    std::uint64_t part) {
  const double more = limits.requests / std::max(1.0, rates.mean_in_flight);
  for (double cut = 2; cut <= std::min(more, kMostCut); cut *= 2) part /= 2;
  return part;
}

std::string said_of(const std::optional<ReadModel>& model) {
  if (!model) return "to see what reads of another length take";
  return fmt::format("a read takes {:.1f} ms, and {:.1f} ms for each MiB",
                     1e3 * model->latency_seconds,
                     1e3 * model->seconds_per_byte * kMiB);
}

}  // namespace

std::size_t Tuner::most_threads(const Observation& now,
                                const StageRates& rates) const {
  if (rates.task_cpu_seconds < kWholeCore * rates.task_seconds) {
    return now.most_threads;
  }
  return std::min(now.most_threads,
                  std::max(wanted_.threads, up_to(now.cores, kNoLimit)));
}

std::size_t Tuner::most_requests(const Observation& now,
                                 const StageRates& rates) const {
  std::size_t most = now.most_in_flight;
  if (now.memory_bytes > 0 && rates.bytes_per_read >= 1) {
    most =
        std::min(most, up_to(std::floor(static_cast<double>(now.memory_bytes) /
                                        rates.bytes_per_read),
                             most));
  }
  return std::max<std::size_t>(1, most);
}

/// The most requests to try next.
std::size_t Tuner::most_requests_next(const Observation& now,
                                      const StageRates& rates) const {
  const auto is = static_cast<double>(std::max<std::size_t>(1, now.in_flight));
  const double full = kFullLinkBytes / std::max(1.0, rates.bytes_per_read);
  double most = kLongestJump * is;
  if (most > full) {
    const double beyond = now.batches == 0 ? 1 : kLongestJumpBeyond;
    most = std::max(beyond * is, full);
  }
  return up_to(std::floor(most), most_requests(now, rates));
}

/// Twice the lookahead of now, or as much as memory holds. No change if that is
/// not more than now.
std::uint64_t Tuner::most_lookahead(const Observation& now,
                                    const StageRates& rates) const {
  const double bytes = rates.bytes_per_read * rates.reads_per_sample;
  double most = 2 * static_cast<double>(now.lookahead);
  if (now.memory_bytes > 0 && bytes >= 1) {
    most = std::min(most, static_cast<double>(now.memory_bytes) / bytes);
  }
  const auto samples = static_cast<std::uint64_t>(most);
  return samples > now.lookahead ? samples : wanted_.lookahead;
}

/// The settings that the highest reachable speed needs.
Settings Tuner::model_settings(const Observation& now,
                               const StageRates& rates) const {
  const std::size_t requests = most_requests(now, rates);
  const std::size_t threads = most_threads(now, rates);
  StageRates wished = rates;
  if (wished.training_rate) *wished.training_rate *= kTrainingMargin;
  const std::optional<double> speed =
      speed_with(wished, {.threads = static_cast<double>(threads),
                          .in_flight = static_cast<double>(requests),
                          .cores = now.cores,
                          .store_rate = store_rate_});
  Settings found = wanted_;
  if (!speed) return found;
  if (const std::optional<double> thread = rates.per_thread()) {
    // Subtracts a little, so that two cores' worth is two
    // threads and not three.
    found.threads = up_to(*speed / *thread - 0.1, threads);
  }
  if (const std::optional<double> request = rates.per_request()) {
    found.in_flight = up_to(kRequestsMargin * *speed / *request,
                            most_requests_next(now, rates));
  }
  return found;
}

std::optional<Tuner::Proposal> Tuner::propose_parts(
    const Observation& now, const StageRates& rates,
    Bottleneck bottleneck) const {
  const double read = rates.bytes_per_read;
  // New parts wait behind the long parts that were sent, and several new ones
  // would replace each long one: see kFullLinkBytes.
  const bool is_too_early =
      now.batches == 0 && rates.mean_in_flight * read >= kFullLinkBytes / 2;
  if (now.part_bytes == 0 || read < 2 * kLeastPartBytes || is_too_early ||
      rates.wait_share < kLeastPartGain || rests(kPartsKnob, now.at_seconds)) {
    return std::nullopt;
  }
  // If all allowed requests are in flight, reads should be longer.
  // Otherwise the lookahead, or memory, bounds their bytes: reads should be
  // shorter and more.
  const bool is_full = bottleneck == Bottleneck::kRequests &&
                       now.in_flight >= now.most_in_flight;
  const auto requests = static_cast<double>(now.most_in_flight);
  if (!is_full && rates.mean_in_flight > kSpare * requests) return std::nullopt;
  const PartLimits limits{
      .requests = requests,
      .bytes = is_full ? static_cast<double>(now.memory_bytes) / 2
                       : rates.mean_in_flight * read};
  // Ranges shorter than a part are read whole, as if parts were as short.
  std::uint64_t part = now.part_bytes;
  while (static_cast<double>(part) > read) part /= 2;
  const PartChoice choice =
      read_model_
          ? by_model(*read_model_, limits, part, read)
          : PartChoice{.part_bytes =
                           is_full ? 2 * part : probe(limits, rates, part)};
  const std::uint64_t best =
      std::clamp(choice.part_bytes, kLeastPartBytes, kMostPartBytes);
  // Longer parts do not lengthen a range that is read whole.
  if (best == part || (best > part && part < now.part_bytes)) {
    return std::nullopt;
  }
  Proposal proposal{.settings = wanted_, .reason = {}, .gain = choice.gain};
  proposal.settings.part_bytes = best;
  if (best < part) {
    const double more = kRequestsMargin * rates.mean_in_flight *
                        static_cast<double>(part) / static_cast<double>(best);
    std::size_t& in_flight = proposal.settings.in_flight;
    in_flight = std::max(in_flight, up_to(more, now.most_in_flight));
  }
  proposal.reason = fmt::format(
      "bottleneck {}: {:.1f} of {} requests in flight, of {} and {:.1f} ms "
      "each; {}",
      to_string(bottleneck), rates.in_flight_of(now.in_flight), now.in_flight,
      format_bytes(static_cast<std::uint64_t>(read)),
      1e3 * rates.latency_seconds, said_of(read_model_));
  return proposal;
}

std::optional<Tuner::Proposal> Tuner::propose(const Observation& now,
                                              const StageRates& rates) const {
  const Bottleneck bottleneck = bottleneck_of(rates, now, false);
  Settings to = wanted_;
  const Settings model = model_settings(now, rates);
  const std::size_t requests = most_requests_next(now, rates);
  switch (bottleneck) {
    case Bottleneck::kThreads: {
      if (rests(kThreadsKnob, now.at_seconds)) return std::nullopt;
      const auto probe = static_cast<double>(wanted_.threads) * 1.25;
      to.threads = std::max({wanted_.threads, model.threads,
                             up_to(probe, most_threads(now, rates))});
      break;
    }
    case Bottleneck::kRequests: {
      const bool is_resting = rests(kRequestsKnob, now.at_seconds);
      const bool is_slack =
          rates.mean_in_flight < kAllUsed * static_cast<double>(now.in_flight);
      if (is_resting || (read_model_ && is_slack)) {
        if (auto parts = propose_parts(now, rates, bottleneck)) return parts;
      }
      if (is_resting) return std::nullopt;
      const auto probe = static_cast<double>(wanted_.in_flight) * kProbe;
      to.in_flight = std::max(
          {wanted_.in_flight, model.in_flight, up_to(probe, requests)});
      break;
    }
    case Bottleneck::kLookahead:
      if (auto parts = propose_parts(now, rates, bottleneck)) return parts;
      if (rates.wait_share < kWaitsForLookahead ||
          rests(kLookaheadKnob, now.at_seconds)) {
        return std::nullopt;
      }
      to.lookahead = most_lookahead(now, rates);
      break;
    case Bottleneck::kTraining:
    case Bottleneck::kCores:
    case Bottleneck::kBandwidth:
    case Bottleneck::kThrottled:
    case Bottleneck::kStore:
      return std::nullopt;
    case Bottleneck::kMemory:
      return propose_parts(now, rates, bottleneck);
  }
  // The other one too, if the one just given would wait for it.
  if (!rests(kThreadsKnob, now.at_seconds)) {
    to.threads = std::max(to.threads, model.threads);
  }
  if (!rests(kRequestsKnob, now.at_seconds)) {
    to.in_flight = std::max(to.in_flight, model.in_flight);
  }
  if (to == wanted_) {
    return bottleneck == Bottleneck::kRequests
               ? propose_parts(now, rates, bottleneck)
               : std::nullopt;
  }
  const auto means = [&](const Settings& settings) {
    return Means{.threads = static_cast<double>(settings.threads),
                 .in_flight = static_cast<double>(settings.in_flight),
                 .cores = now.cores,
                 .store_rate = store_rate_};
  };
  Proposal proposal{.settings = to, .reason = {}, .gain = std::nullopt};
  const std::optional<double> after = speed_with(rates, means(to));
  if (after && bottleneck != Bottleneck::kLookahead) {
    proposal.gain = std::max(0.0, *after / rates.samples_per_second - 1);
  }
  proposal.reason = fmt::format("bottleneck {}: {}", to_string(bottleneck),
                                explain(rates, now, std::nullopt).reason);
  return proposal;
}

}  // namespace leat
