// Reads on their way, and the reads that joined them.
#pragma once
#include <memory>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/cache/record_key.h"
#include "leat/metrics/stalls.h"
#include "leat/store/store.h"

namespace leat {

/// A read, and the caller that waits for it.
struct AwaitedRead {
  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
};

/// A read of the inner store or of a tier, and all who wait for its bytes. A
/// flight lasts from read() until it is answered.
struct ReadFlight {
  RecordKey key;
  AwaitedRead read;
  TimePoint began;
  bool has_waited = false;          ///< For another process to bring it.
  std::optional<Interval> awaited;  ///< While another process was to bring it.
  bool is_decided = false;          ///< Whether to keep it was decided.
  std::vector<AwaitedRead> joined;  ///< Guarded by ReadFlights.
};
using ReadFlightRef = std::shared_ptr<ReadFlight>;

/// The flights of a cache, one for each record: a read of a record that is on
/// its way joins its flight.
///
/// Threads: any.
class ReadFlights {
 public:
  ~ReadFlights();

  /// False: another flight brings the record, and has taken over the read.
  bool begin(const ReadFlightRef& flight);
  /// The hint last in the plan among the reads that joined; nullopt: none did.
  std::optional<ReadHint> latest_joined(const ReadFlight& flight) const;
  /// Ends the flight: later reads begin their own. Returns the reads that
  /// joined.
  std::vector<AwaitedRead> end(ReadFlight& flight);

 private:
  mutable Mutex mutex_;
  std::unordered_map<RecordKey, ReadFlightRef, RecordKeyHash> flights_
      LEAT_GUARDED_BY(mutex_);
};

/// The hint that is last in the plan. REQUIRES: `reads` is not empty.
const ReadHint& latest_hint(const std::vector<AwaitedRead>& reads);

}  // namespace leat
