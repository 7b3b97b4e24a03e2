// Between a script and its bucket.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "leat/base/clock.h"
#include "leat/base/env.h"
#include "leat/base/result.h"

namespace leat {

/// The traffic through a relay since its counts were last reset, or in a part
/// of that time.
struct RelayCounts {
  std::uint64_t passed_on = 0;    ///< Reads that the store answered.
  std::uint64_t from_memory = 0;  ///< Reads that were answered here.
  std::uint64_t kept_away = 0;    ///< Writes that the store never saw.
  std::uint64_t lists = 0;        ///< Lists of keys among those passed on.
  std::uint64_t bytes = 0;        ///< That the store sent.
  /// The times of GETs of objects that the store answered: until the first
  /// byte, and until the last, all added up.
  Nanoseconds until_first_byte{0};
  Nanoseconds until_last_byte{0};
};

/// An S3 endpoint on loopback in front of the user's own. A script's reads go
/// to that one, signed with the user's credentials, or are answered from
/// memory; so one script can be run with its data far away and near. Its writes
/// are acknowledged and dropped.
///
/// Path style, below a random path: clients that do not know it are refused,
/// since those that do ask as the user.
///
/// Threads:  any.
/// Lifetime: destruction ends what is under way.
class Relay {
 public:
  enum class Mode : std::uint8_t {
    kCold,  ///< Every read goes to the store.
    kWarm,  ///< Bytes that were read before come from memory; others are kept.
  };

  virtual ~Relay() = default;

  /// "http://127.0.0.1:PORT/TOKEN", for AWS_ENDPOINT_URL.
  virtual std::string url() const = 0;
  virtual void set_mode(Mode mode) = 0;
  virtual RelayCounts counts() const = 0;
  /// Those that came of answers after `from`, until `until`, of the counts that
  /// counts() tells; to a hundredth of a second.
  virtual RelayCounts counts_between(TimePoint from, TimePoint until) const = 0;
  virtual void reset_counts() = 0;
};

/// `env` tells the place of the store and the credentials, as for any store;
/// `most_bytes` bounds the memory.
///
/// Errors:
///   kUnavailable  no port is free
Result<std::unique_ptr<Relay>> open_relay(const Env& env,
                                          std::uint64_t most_bytes);

}  // namespace leat
