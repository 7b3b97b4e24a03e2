// The scan goes through the shards in order and notes where blocks begin; a
// window is final once all its blocks are known, for blocks never reach over
// the end of a shard. take() makes a catalogue of the shards that the windows
// it gives lie in.

#include "leat/engine/shard_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "leat/index/build.h"
#include "leat/index/open_catalogue.h"
#include "leat/index/scan_all.h"
#include "leat/plan/order.h"
#include "leat/runtime/log.h"
#include "leat/runtime/thread_name.h"

namespace leat {
namespace {

ReadAheadOptions ahead_options(const UnindexedShards& shards,
                               std::string_view prefix,
                               const StreamOptions& stream) {
  // The first batch waits for a window, and for nothing else.
  ReadAheadOptions options{.objects = shards.objects.data,
                           .most_bytes = stream.memory_bytes,
                           .first_in_flight = stream.window_blocks};
  for (ObjectInfo& object : options.objects) {
    object.key = key_in_store(prefix, object.key);
  }
  return options;
}

Result<std::shared_ptr<const Catalogue>> open_shared(Result<Buffer> bytes) {
  if (!bytes) return std::move(bytes).error();
  LEAT_TRY(Catalogue catalogue, Catalogue::open(*std::move(bytes)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

/// Where the bytes of a sample begin.
std::uint64_t begin_of(const Catalogue& catalogue, SampleId sample) {
  std::uint64_t begin = ~std::uint64_t{0};
  for (std::size_t f = 0; f < catalogue.fields().size(); ++f) {
    const ByteRange range = catalogue.range(f, sample);
    if (!range.is_missing()) begin = std::min(begin, range.offset);
  }
  return begin;
}

}  // namespace

ShardStream::ShardStream(const OpenedStore& store, UnindexedShards shards,
                         StreamOptions options, const Env& env)
    : inner_(*store.store),
      prefix_(store.prefix),
      identity_(store.identity),
      shards_(std::move(shards)),
      to_scan_(shards_to_scan(shards_.objects)),
      options_(options),
      etags_(etag_kind_of(inner_)),
      env_(env),
      ahead_(inner_, ahead_options(shards_, prefix_, options_)),
      all_(std::make_unique<ShardCatalogue>(
          shards_.catalogue_options.index.classes, etags_)),
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

void ShardStream::run(const std::stop_token& stop) {
  Result<std::shared_ptr<const Catalogue>> made = finish(stop);
  const MutexLock lock(mutex_);
  if (made) {
    catalogue_ = *std::move(made);
  } else {
    failed_ = std::move(made).error().while_doing(
        fmt::format("indexing {}", inner_.url_of(prefix_)));
  }
  tell();
}

Result<std::shared_ptr<const Catalogue>> ShardStream::finish(
    const std::stop_token& stop) {
  LEAT_TRY_VOID(scan_shards(stop));
  LEAT_TRY(BuiltCatalogue built,
           std::move(*all_).finish(inner_, prefix_, shards_.objects, stop));
  LEAT_TRY(const OpenedCatalogue kept,
           keep_catalogue(std::move(built), identity_,
                          shards_.catalogue_options.index.classes, env_));
  if (!kept.note.empty()) log_warning(kept.note);
  return kept.catalogue;
}

Result<void> ShardStream::scan_shards(const std::stop_token& stop) {
  for (std::size_t i = 0; i < to_scan_.size(); ++i) {
    {
      const MutexLock lock(mutex_);
      if (!wants_parts_) break;
    }
    auto members =
        scan_members(to_scan_[i].shard.size_bytes,
                     [&](std::uint64_t offset, std::span<std::byte> into) {
                       return ahead_.scan({i, offset}, into, stop);
                     });
    if (!members) {
      return std::move(members).error().while_doing(fmt::format(
          "scanning {}",
          inner_.url_of(key_in_store(prefix_, to_scan_[i].shard.key))));
    }
    LEAT_TRY_VOID(add_known(i, {.members = *std::move(members), .note = ""}));
  }
  std::size_t known = 0;
  {
    const MutexLock lock(mutex_);
    known = known_.size();
  }
  return scan_rest(known, stop);
}

/// By headers alone, many at once.
Result<void> ShardStream::scan_rest(std::size_t from,
                                    const std::stop_token& stop) {
  if (from == to_scan_.size()) return {};
  return scan_all(
      inner_, prefix_, std::span(to_scan_).subspan(from),
      shards_.catalogue_options.index.threads,
      [&](std::size_t index, const ScannedShard& scanned) {
        return add(from + index, scanned);
      },
      stop);
}

Result<void> ShardStream::add(std::size_t shard, const ScannedShard& scanned) {
  if (auto added = all_->add(to_scan_[shard], scanned); !added) {
    return std::move(added).error().while_doing(fmt::format(
        "scanning {}",
        inner_.url_of(key_in_store(prefix_, to_scan_[shard].shard.key))));
  }
  return {};
}

Result<void> ShardStream::add_known(std::size_t shard, ScannedShard scanned) {
  LEAT_TRY_VOID(add(shard, scanned));
  ShardCatalogue alone(shards_.catalogue_options.index.classes, etags_);
  LEAT_TRY_VOID(alone.add(to_scan_[shard], scanned));
  std::shared_ptr<const Catalogue> catalogue;
  if (alone.samples() != 0) {
    LEAT_TRY(catalogue, open_shared(std::move(alone).finish()));
  }
  const MutexLock lock(mutex_);
  known_.push_back({.first_sample = samples_,
                    .first_block = block_samples_.size(),
                    .fields = all_->fields().size(),
                    .scanned = std::move(scanned)});
  fields_ = all_->fields();
  if (catalogue != nullptr) {
    const BlockMap blocks = BlockMap::build(*catalogue);
    for (std::uint64_t b = 0; b < blocks.blocks(); ++b) {
      const SampleId first{blocks.first_sample(b)};
      block_samples_.push_back(samples_ + first.value);
      block_places_.push_back({shard, begin_of(*catalogue, first)});
    }
    samples_ += catalogue->samples();
  }
  tell();
  return {};
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
  LEAT_TRY(made.catalogue, open_shared(std::move(part).finish()));
  return made;
}

/// Reading in a window lets go of those before it, but for what the next part
/// will begin with: the window of `position`.
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
  MutexLock lock(mutex_);
  changed_.wait_for(lock, timeout, [this]() LEAT_NO_THREAD_SAFETY_ANALYSIS {
    return news_ != heard_;
  });
  heard_ = news_;
}

}  // namespace leat
