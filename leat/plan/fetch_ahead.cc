#include "leat/plan/fetch_ahead.h"

#include "leat/base/errors.h"

namespace leat {

Result<FetchAhead> FetchAhead::make(const FetchAheadOptions& options) {
  if (options.fetch_size == 0 || options.fetch_size > kMost) {
    return invalid(
        "fetch_size={}; it is the number of samples that are asked for at "
        "once, 1 to {}",
        options.fetch_size, kMost);
  }
  if (options.queue_threshold > kMost) {
    return invalid("queue_threshold={}; it is at most {}",
                   options.queue_threshold, kMost);
  }
  return FetchAhead(options);
}

}  // namespace leat
