// One job tuned: observations in, settings and the reasons for them out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "leat/tune/decision.h"
#include "leat/tune/explain.h"
#include "leat/tune/observation.h"
#include "leat/tune/read_model.h"
#include "leat/tune/stage_rates.h"

namespace leat {

/// The settings that a tuner chooses.
struct Settings {
  std::size_t threads = 1;
  std::size_t in_flight = 1;
  /// The least number of samples to ask for ahead; 0: as many as
  /// `in_flight` needs.
  std::uint64_t lookahead = 0;
  /// See Observation::part_bytes; 0: parts stay as they are.
  std::uint64_t part_bytes = 0;

  bool operator==(const Settings&) const = default;
};

/// Chooses the settings of one loader by a model, and keeps what measurement
/// bears out.
///
/// While training waits for the loader, it asks the model (explain.h) how many
/// threads and requests in flight the fastest stage of all would need, makes
/// that change, lets it take hold, and measures. It undoes a change that gained
/// too little, and does not try it again for a while, each time for longer.
/// When the world changes (a read, a task or a step of training takes another
/// time, the limits move, a long epoch has ended), all may be tried again.
/// While the loader waits for training, it changes nothing.
///
/// If a store fails, is late or is silent, the tuner does not ask it for more
/// at a time: more requests in flight would not hide its time, and
/// measurements made meanwhile say nothing about a change. The tuner then
/// undoes a change that it is trying and, until the store is well, tries only
/// changes of threads.
///
/// Parts of large ranges become shorter where reads could be more than there
/// are ranges planned ahead, and longer where all requests are in flight and
/// may not be more: first as a probe, then by what reads of two lengths took
/// (read_model.h).
///
/// Never beyond `most_threads`, `most_in_flight` or what memory holds; with
/// more threads than cores only where a task has much less than a core.
///
/// Pure: it sees no clock but that of the observations. Threads: one at a time.
class Tuner {
 public:
  struct Step {
    Settings settings;
    /// The decisions of now, and earlier ones whose gain is now known.
    std::vector<Decision> lines;
  };

  /// To be called about once a second, at least every few; the settings are for
  /// the loader to take over before the next call.
  Step observe(const Observation& now);

  /// Nothing is being tried, and nothing is worth trying now.
  bool is_settled() const { return is_settled_; }
  /// All of them, the latest last; at most the last 1,000.
  const std::deque<Decision>& decisions() const { return decisions_; }
  /// Explains the last observations. None: too little was seen.
  std::optional<Explanation> explanation() const;

 private:
  enum Knob : std::size_t {
    kThreadsKnob,
    kRequestsKnob,
    kLookaheadKnob,
    kPartsKnob,
    kKnobs
  };

  /// When a knob may be turned again after a turn that gained nothing.
  struct Rest {
    double until_seconds = 0;
    double next_seconds = kFirstRest;
  };
  struct Trial {
    Settings before;
    StageRates rates_before;
    std::array<bool, kKnobs> turned{};
    std::size_t decisions = 0;  ///< How many of the latest are its own.
    double began_seconds = 0;
    bool has_taken_hold = false;
  };
  struct Proposal {
    Settings settings;
    std::string reason;
    std::optional<double> gain;
  };

  static constexpr double kFirstRest = 10;
  static constexpr double kLongestRest = 320;

  void begin_anew(const Observation& now);
  bool take_limits(const Observation& now, Step& step);
  bool is_enough(const StageRates& rates) const;
  void judge(const Observation& now, const StageRates& rates, Step& step);
  /// True if the store was unwell, and nothing may be concluded.
  bool take_trouble(const Observation& now, Step& step);
  void take_back(const Observation& now, const Trial& trial,
                 const std::string& why, Step& step);
  bool take_epoch_end(const Observation& now);
  void seek(const Observation& now, const StageRates& rates, Step& step);
  void watch_the_world(const StageRates& rates);
  std::optional<Proposal> propose(const Observation& now,
                                  const StageRates& rates) const;
  Settings model_settings(const Observation& now,
                          const StageRates& rates) const;
  /// The best size of parts, and its gain by the model, if known.
  std::optional<Proposal> propose_parts(const Observation& now,
                                        const StageRates& rates,
                                        Bottleneck bottleneck) const;
  bool rests(Knob knob, double at_seconds) const;
  std::size_t most_threads(const Observation& now,
                           const StageRates& rates) const;
  std::size_t most_requests(const Observation& now,
                            const StageRates& rates) const;
  std::size_t most_requests_next(const Observation& now,
                                 const StageRates& rates) const;
  std::uint64_t most_lookahead(const Observation& now,
                               const StageRates& rates) const;
  std::size_t decide(const Observation& now, const Settings& from,
                     const Settings& to, const std::string& reason,
                     std::optional<double> gain, Step& step);

  Settings wanted_;
  bool has_begun_ = false;
  bool is_settled_ = false;
  /// Since the last change took hold; the first is where measuring starts.
  std::deque<Observation> seen_;
  std::optional<Trial> trial_;
  std::array<Rest, kKnobs> rests_;
  /// Samples a second beyond which more requests brought nothing.
  std::optional<double> store_rate_;
  /// The time of a read by its length, once parts have had two lengths.
  std::optional<ReadModel> read_model_;
  double epoch_began_seconds_ = 0;
  /// The times of the stages when last a trial ended.
  std::optional<StageRates> reference_;
  std::string world_;       ///< The changes since then, for the next reason.
  std::size_t drifts_ = 0;  ///< Looks in a row that differed.
  std::optional<StageRates> rates_;
  std::deque<Decision> decisions_;
};

}  // namespace leat
