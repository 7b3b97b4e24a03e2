// Failures on purpose: the kinds of faults, and their times.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/mutex.h"
#include "leat/base/result.h"

namespace leat {

/// One way to fail.
struct Fault {
  enum class Kind : std::uint8_t {
    kNone,
    kStatus,    ///< "503": an error of this status, and nothing is done.
    kReset,     ///< "reset": no reply, the connection is reset.
    kTruncate,  ///< "truncate": half the body, then the connection ends.
    kStall,     ///< "stall": half the body, then silence.
    kSlow,      ///< "slow:2s": the first byte comes this much later.
    kTrickle,   ///< "trickle": a byte a second.
    kFlip,      ///< "flip": one bit of the body is wrong.
  };
  Kind kind = Kind::kNone;
  int status = 0;
  Nanoseconds delay{0};
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Errors:
///   kInvalidArgument  none of the forms above; a status outside 400 to 599
Result<Fault> parse_fault(std::string_view text);

/// A fault and how often it strikes.
struct FaultRate {
  Fault fault;
  double probability = 0.0;
};

/// Parses text such as "503:1%" or "slow:2s:0.5%".
///
/// Errors:
///   kInvalidArgument  no known fault stands before the last colon, or no
///                     percentage from 0 to 100 after it
Result<FaultRate> parse_fault_rate(std::string_view text);

/// A line of a fault script:
///
///     after 10 GET photos/ 503 x3        requests 11, 12 and 13 that match
///     after 0 LIST * slow:2s x* 50%      every second LIST, at random
///
/// The words are, in this order: how many matching requests pass first (`after
/// 10`); the method (GET, HEAD, LIST, PUT, DELETE, POST, or * for any); the
/// beginning of the key (of /bucket/key if it begins with a slash), or *; the
/// fault; how often it strikes (x1 if left out, x* for ever); its probability
/// (100 % if left out). Empty lines and lines that begin with # are skipped.
struct FaultLine {
  std::uint64_t after = 0;
  std::string method;  ///< Empty for any.
  std::string prefix;
  Fault fault;
  std::uint64_t times = 1;
  double probability = 1.0;
};

/// Errors: kInvalidArgument  names the line and its error
Result<std::vector<FaultLine>> parse_fault_script(std::string_view text);

/// The properties of a request that a fault may depend on.
struct FaultQuestion {
  std::string_view method;  ///< As in FaultLine: a listing is LIST.
  std::string_view bucket;
  std::string_view key;
  std::string_view range;
};

/// Decides which requests fail.
///
/// With rates, the luck of a request depends on the seed, on its target and on
/// how often that has been asked before; so it is the same in every run, for
/// any order of requests. Targets beyond the first `most_targets` are counted
/// together: their luck depends on the order of arrival. Scripts count in that
/// order too.
///
/// Threads: any.
class FaultInjector {
 public:
  /// 160 MB of targets.
  static constexpr std::size_t kMostTargets = 4'000'000;

  FaultInjector(std::uint64_t seed, std::vector<FaultRate> rates,
                std::vector<FaultLine> script,
                std::size_t most_targets = kMostTargets);

  Fault draw(const FaultQuestion& question);

 private:
  std::optional<Fault> draw_from_script(const FaultQuestion& question)
      LEAT_REQUIRES(mutex_);
  std::uint64_t times_asked(std::uint64_t target) LEAT_REQUIRES(mutex_);

  const std::uint64_t seed_;
  const std::vector<FaultRate> rates_;
  const std::vector<FaultLine> script_;
  const std::size_t most_targets_;

  Mutex mutex_;
  // The matches of each line.
  std::vector<std::uint64_t> matched_ LEAT_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::uint64_t> asked_
      LEAT_GUARDED_BY(mutex_);
  std::uint64_t asked_of_others_ LEAT_GUARDED_BY(mutex_) = 0;
};

}  // namespace leat
