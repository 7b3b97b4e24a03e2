// Reads on their way, and who joined them.
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

/// A read, and whom it is for.
struct AwaitedRead {
  ReadRequest request;
  std::stop_token stop;
  ReadDone done;
};

/// One read of the inner store or of a tier, and all who wait for its bytes. A
/// flight lasts from read() until it is answered.
struct ReadFlight {
  RecordKey key;
  AwaitedRead read;
  TimePoint began;
  bool has_waited = false;          ///< For another process to bring it.
  std::optional<Interval> awaited;  ///< While another process was to.
  bool is_decided = false;          ///< Whether it is kept.
  std::vector<AwaitedRead> joined;  ///< Guarded by ReadFlights.
};
using ReadFlightRef = std::shared_ptr<ReadFlight>;

/// The flights of a cache, one a record: a read of what is on its way joins the
/// flight.
///
/// Threads: any.
class ReadFlights {
 public:
  ~ReadFlights();

  /// False: another flight brings the record, and has taken over the read.
  bool begin(const ReadFlightRef& flight);
  /// The hint of the last in the plan of those that joined; nullopt: none did.
  std::optional<ReadHint> latest_joined(const ReadFlight& flight) const;
  /// Ends it: later reads begin a flight of their own. Returns those that
  /// joined.
  std::vector<AwaitedRead> end(ReadFlight& flight);

 private:
  mutable Mutex mutex_;
  std::unordered_map<RecordKey, ReadFlightRef, RecordKeyHash> flights_
      LEAT_GUARDED_BY(mutex_);
};

/// The hint of the last of them in the plan. REQUIRES: there is one.
const ReadHint& latest_hint(const std::vector<AwaitedRead>& reads);

}  // namespace leat
