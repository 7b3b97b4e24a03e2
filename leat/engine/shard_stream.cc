// The scan goes through the shards in order; take() makes a catalogue of the
// shards that its windows lie in (known_shards.h).
//
// For the scan itself see shard_stream_scan.cc.

#include "leat/engine/shard_stream.h"

#include <algorithm>
#include <utility>

#include "leat/base/errors.h"
#include "leat/runtime/start_thread.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

void say_waiting(const UnindexedShards& shards, bool is_waiting) {
  if (shards.log != nullptr) shards.log->say_awaited(is_waiting);
  if (shards.job != nullptr) shards.job->say_waiting(is_waiting);
}

}  // namespace

ReadAheadOptions read_ahead_options(const UnindexedShards& shards,
                                    std::string_view prefix,
                                    const StreamOptions& stream) {
  // The first batch waits for one window and nothing else.
  ReadAheadOptions options{.objects = shards.objects.data,
                           .most_bytes = stream.memory_bytes,
                           .first_in_flight = stream.window_blocks};
  if (shards.log != nullptr) {
    options.is_awaited = [log = shards.log.get()] { return log->is_awaited(); };
  }
  if (JobScan* const job = shards.job.get(); job != nullptr) {
    options.is_awaited = [job] { return job->is_awaited(); };
    for (std::size_t i = 0; i < options.objects.size(); ++i) {
      options.is_skipped.push_back(!job->is_ours(i));
    }
    options.first_in_flight =
        std::max<std::size_t>(1, stream.window_blocks / job->rank().world_size);
  }
  for (ObjectInfo& object : options.objects) {
    object.key = key_in_store(prefix, object.key);
  }
  return options;
}

ShardStream::ShardStream(ReadAheadStore& ahead, const OpenedStore& store,
                         UnindexedShards shards, StreamOptions options,
                         const Env& env)
    : ahead_(ahead),
      inner_(ahead.inner()),
      prefix_(store.prefix),
      identity_(store.identity),
      shards_(std::move(shards)),
      to_scan_(shards_to_scan(shards_.objects)),
      options_(options),
      env_(env),
      known_(to_scan_, shards_.catalogue_options.index.classes,
             etag_kind_of(inner_), options_.window_blocks),
      thread_(start_thread([this](const std::stop_token& stop) {
        name_this_thread("leat-scan");
        run(stop);
      })) {}

ShardStream::~ShardStream() { stop(); }

void ShardStream::stop() {
  thread_.request_stop();
  ahead_.stop_holding();
  const MutexLock lock(mutex_);
  tell();
}

void ShardStream::tell() {
  has_news_ = true;
  changed_.notify_all();
}

Result<std::optional<StreamPart>> ShardStream::take(
    std::uint64_t position, std::uint64_t global_batch) {
  const MutexLock lock(mutex_);
  const std::uint64_t block = known_.window_block(position);
  ahead_.let_go_before(known_.place_of(block));
  const bool is_first = !first_fields_;
  const auto end = known_.next_end(position, global_batch, is_first);
  const bool is_whole = catalogue_ != nullptr;
  std::optional<StreamPart> part;
  std::uint64_t next = 0;  // The position with which the next part begins.
  if (end && (!is_whole || (is_first && *end < known_.samples()))) {
    LEAT_TRY_VOID(check_fields(known_.last_shard(*end)));
    LEAT_TRY(part, known_.make_part(block, *end));
    next = position + (*end - position) / global_batch * global_batch;
  } else if (is_whole) {
    LEAT_TRY_VOID(check_fields(known_.size() - 1));
    part = StreamPart{
        .catalogue = catalogue_, .end = known_.samples(), .is_last = true};
    next = known_.samples();
  } else if (failed_) {
    return *failed_;
  }
  // Reading in a window releases those before it, except for the next part's
  // first.
  if (part) ahead_.set_marks(known_.places_of_windows(block, next));
  // Others may be late with theirs. That is not a reason to read ours twice.
  const bool waits_for_us =
      shards_.job == nullptr || shards_.job->is_ours(known_.size());
  ahead_.hurry(!part && waits_for_us);
  if (part) say_waiting(shards_, false);
  return part;
}

Result<void> ShardStream::check_fields(std::size_t shard) {
  const std::size_t now = known_.fields_up_to(shard);
  const std::size_t first = first_fields_.value_or(now);
  first_fields_ = first;
  if (!options_.takes_all_fields || now == first) return {};
  return invalid(
      "the field \"{}\" comes up to {} alone, after the first batches were "
      "made without it; name the fields that you want (fields=), or index the "
      "shards before (leat index)",
      known_.fields()[first].name,
      inner_.url_of(key_in_store(prefix_, to_scan_[shard].shard.key)));
}

void ShardStream::let_go() { ahead_.let_go_before({to_scan_.size(), 0}); }

bool ShardStream::has_given() const {
  const MutexLock lock(mutex_);
  return first_fields_.has_value();
}

void ShardStream::take_rest() {
  ahead_.stop_holding();
  const MutexLock lock(mutex_);
  wants_parts_ = false;
}

Result<std::shared_ptr<const Catalogue>> ShardStream::catalogue() const {
  const MutexLock lock(mutex_);
  if (failed_) return *failed_;
  return catalogue_;
}

void ShardStream::wait_within(Nanoseconds timeout, bool is_onlooker) {
  // The scanning process may be waiting for memory that only its own user can
  // free.
  if (!is_onlooker) say_waiting(shards_, true);
  MutexLock lock(mutex_);
  changed_.wait_for(lock, timeout, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return has_news_;
  });
  if (!is_onlooker) has_news_ = false;
}

}  // namespace leat
