// The scan goes through the shards in order and notes where blocks begin; a
// window is final once all its blocks are known, for blocks never reach over
// the end of a shard. take() makes a catalogue of the shards that the windows
// it gives lie in.
//
// How the scan goes: shard_stream_scan.cc.

#include "leat/engine/shard_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/plan/order.h"
#include "leat/runtime/thread_name.h"

namespace leat {

ReadAheadOptions read_ahead_options(const UnindexedShards& shards,
                                    std::string_view prefix,
                                    const StreamOptions& stream) {
  // The first batch waits for a window, and for nothing else.
  ReadAheadOptions options{.objects = shards.objects.data,
                           .most_bytes = stream.memory_bytes,
                           .first_in_flight = stream.window_blocks};
  if (shards.log != nullptr) {
    options.is_awaited = [log = shards.log.get()] { return log->is_awaited(); };
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
      etags_(etag_kind_of(inner_)),
      env_(env),
      thread_([this](const std::stop_token& stop) {
        name_this_thread("leat-scan");
        run(stop);
      }) {}

ShardStream::~ShardStream() { stop(); }

void ShardStream::stop() {
  thread_.request_stop();
  ahead_.stop_holding();
  const MutexLock lock(mutex_);
  tell();
}

void ShardStream::tell() {
  ++news_;
  changed_.notify_all();
}

std::uint64_t ShardStream::begin_of_block(std::uint64_t block) const {
  return block < block_samples_.size() ? block_samples_[block] : samples_;
}

/// The first block of the window of a position; the number of blocks where that
/// is not known yet.
std::uint64_t ShardStream::window_block(std::uint64_t position) const {
  if (position >= samples_) {
    return block_samples_.size() / options_.window_blocks *
           options_.window_blocks;
  }
  const auto after = std::ranges::upper_bound(block_samples_, position);
  const auto block =
      static_cast<std::uint64_t>(after - block_samples_.begin()) - 1;
  return block / options_.window_blocks * options_.window_blocks;
}

/// Up to which sample a part from `position` on may go: whole windows that
/// hold a global batch.
std::optional<std::uint64_t> ShardStream::next_end(
    std::uint64_t position, std::uint64_t global_batch) const {
  const std::uint64_t window = options_.window_blocks;
  const std::uint64_t blocks = block_samples_.size() / window * window;
  std::uint64_t end = begin_of_block(blocks);
  if (end < position || end - position < global_batch) {
    return std::nullopt;
  }
  if (first_fields_) return end;
  std::uint64_t least = window;
  while (begin_of_block(least) - position < global_batch) {
    least += window;
  }
  return begin_of_block(least);
}

void ShardStream::let_go_before(std::uint64_t block) {
  ahead_.let_go_before(block < block_places_.size()
                           ? block_places_[block]
                           : AheadPlace{known_.size(), 0});
}

Result<std::optional<StreamPart>> ShardStream::take(
    std::uint64_t position, std::uint64_t global_batch) {
  const MutexLock lock(mutex_);
  const std::uint64_t block = window_block(position);
  let_go_before(block);
  const bool is_first = !first_fields_;
  const auto end = next_end(position, global_batch);
  const bool is_whole = catalogue_ != nullptr;
  std::optional<StreamPart> part;
  if (end && (!is_whole || (is_first && *end < samples_))) {
    LEAT_TRY(part, make_part(block, *end));
    mark_windows(block,
                 position + (*end - position) / global_batch * global_batch);
  } else if (is_whole) {
    LEAT_TRY_VOID(check_fields(known_.size() - 1));
    part =
        StreamPart{.catalogue = catalogue_, .end = samples_, .is_last = true};
    mark_windows(block, samples_);
  } else if (failed_) {
    return *failed_;
  }
  ahead_.hurry(!part);
  if (part && shards_.log != nullptr) shards_.log->say_awaited(false);
  return part;
}

Result<StreamPart> ShardStream::make_part(std::uint64_t block,
                                          std::uint64_t end) {
  const std::size_t first = block_places_[block].object;
  const auto after = std::ranges::lower_bound(block_samples_, end);
  const std::size_t last =
      block_places_[static_cast<std::size_t>(after - block_samples_.begin()) -
                    1]
          .object;
  LEAT_TRY_VOID(check_fields(last));
  for (std::size_t i = 0; i < first; ++i) known_[i].scanned = {};
  ShardCatalogue part(
      shards_.catalogue_options.index.classes, etags_,
      {fields_.begin(),
       fields_.begin() + static_cast<std::ptrdiff_t>(known_[last].fields)});
  for (std::size_t i = first; i <= last; ++i) {
    LEAT_TRY_VOID(part.add(to_scan_[i], known_[i].scanned));
  }
  StreamPart made{.first_sample = known_[first].first_sample,
                  .first_block = known_[first].first_block,
                  .end = end - known_[first].first_sample};
  LEAT_TRY(made.catalogue, std::move(part).open());
  return made;
}

/// Reading in a window lets go of those before it, except for the window of
/// `position`, with which the next part will begin.
void ShardStream::mark_windows(std::uint64_t from_block,
                               std::uint64_t position) {
  std::vector<AheadPlace> marks;
  const std::uint64_t last = window_block(position);
  for (std::uint64_t block = from_block;
       block <= last && block < block_places_.size();
       block += options_.window_blocks) {
    marks.push_back(block_places_[block]);
  }
  ahead_.set_marks(std::move(marks));
}

Result<void> ShardStream::check_fields(std::size_t shard) {
  const std::size_t now = known_[shard].fields;
  const std::size_t first = first_fields_.value_or(now);
  first_fields_ = first;
  if (!options_.takes_all_fields || now == first) return {};
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "the field \"{}\" comes up to {} alone, after the first "
          "batches were made without it; name the fields that you "
          "want (fields=), or index the shards before (leat index)",
          fields_[first].name,
          inner_.url_of(key_in_store(prefix_, to_scan_[shard].shard.key))));
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

void ShardStream::wait_within(Nanoseconds timeout) {
  // The process that scans may be waiting for memory that only its own user can
  // free.
  if (shards_.log != nullptr) shards_.log->say_awaited(true);
  MutexLock lock(mutex_);
  changed_.wait_for(lock, timeout, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return news_ != heard_;
  });
  heard_ = news_;
}

}  // namespace leat
