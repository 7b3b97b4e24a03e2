#include "leat/api/loader_options_of.h"

#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/stores.h"
#include "leat/pipeline/program/program.h"

namespace leat {
namespace {

CacheOptions cache_options_of(const ReaderCache& cache) {
  CacheOptions options;
  options.is_auto = cache.is_auto;
  options.ram_bytes = cache.ram_bytes;
  options.disk = cache.disk;
  options.disk_limit_bytes = cache.disk_limit_bytes;
  options.is_shared = cache.is_shared;
  return options;
}

}  // namespace

Result<LoaderOptions> loader_options_of(const ReaderOptions& options) {
  // Is false of what is no number.
  const double patience = options.storage.patience_seconds;
  if (!(patience >= 0 && patience <= kMostPatienceSeconds)) {
    return invalid(
        "patience_seconds is {}; it is a number from 0 to {}, which is a week",
        patience, kMostPatienceSeconds);
  }
  LoaderOptions made;
  made.batch_size = options.batch_size;
  made.global_batch_size = options.global_batch_size;
  made.rank = options.rank;
  made.shuffle = options.shuffle;
  made.seed = options.seed;
  made.drop_last = options.drop_last;
  made.pad = options.pad;
  made.join = options.join;
  made.epochs = options.epochs;
  LEAT_TRY(made.ops, parse_ops(options.ops));
  made.fields = options.fields;
  made.ids = options.ids;
  made.on_error =
      options.substitutes_bad ? OnError::kSubstitute : OnError::kRaise;
  made.memory_bytes = options.memory_bytes;
  made.threads = options.threads;
  made.max_in_flight = options.max_in_flight;
  if (options.cache) made.cache = cache_options_of(*options.cache);
  made.trace = options.trace;
  return made;
}

StoreOptions store_options_of(const ReaderStorage& storage) {
  StoreOptions options;
  options.endpoint_url = storage.endpoint_url;
  options.of_scheme.insert(storage.of_scheme.begin(), storage.of_scheme.end());
  if (!storage.region.empty()) options.of_scheme["region"] = storage.region;
  if (!storage.profile.empty()) options.of_scheme["profile"] = storage.profile;
  options.no_sign_request = storage.no_sign_request;
  options.requester_pays = storage.requester_pays;
  options.patience = from_seconds(storage.patience_seconds);
  return options;
}

}  // namespace leat
