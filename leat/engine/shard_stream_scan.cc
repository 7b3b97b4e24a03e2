// The thread of a ShardStream. It learns of shards from the log,
// or by reading them.
//
// With several ranks, one rank scans the shards and writes the members of each
// into the log. The others read the log and add the members as the scanning
// rank does. So all ranks come to know the same members, and any of them can
// continue the scan.

#include <fmt/format.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "leat/base/errors.h"
#include "leat/engine/job_shards.h"
#include "leat/engine/shard_stream.h"
#include "leat/index/listing.h"
#include "leat/index/open_catalogue.h"
#include "leat/index/scan_all.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// The time between two looks at the findings of another process.
constexpr std::chrono::milliseconds kPace{20};

/// On taking over from another process. Errors: kUnavailable if shards changed
Result<void> check_listing(Store& store, const std::string& prefix,
                           const SortedObjects& known,
                           const std::stop_token& stop) {
  LEAT_TRY(auto listed, list_data(store, prefix, {}, stop));
  LEAT_TRY(const SortedObjects objects, sort_objects(std::move(listed)));
  if (is_same(objects, known)) return {};
  return unavailable(
      "the shards changed while they were being indexed; start again");
}

/// Scans a shard through `ahead`, which reads ahead of the scan.
Result<ScannedShard> scan_ahead(ReadAheadStore& ahead,
                                const std::string& prefix,
                                const ShardToScan& to_scan, std::size_t shard,
                                const std::stop_token& stop) {
  return scan_shard(
      ahead.inner(), in_store(prefix, to_scan),
      [&](std::uint64_t offset, std::span<std::byte> into) {
        return ahead.scan({shard, offset}, into, stop);
      },
      stop);
}

/// Writes the findings down for the other processes of this node. `log` may be
/// null.
void write_down(ScanLog* log, const ScannedShard& scanned,
                const std::string& url) {
  if (log == nullptr || !log->is_writer()) return;
  if (auto written = log->append(scanned); !written) {
    log_warning(
        fmt::format("the other ranks of this node index {} for themselves: {}",
                    url, written.error().message()));
    log->remove();
  }
}

}  // namespace

void ShardStream::run(const std::stop_token& stop) {
  const auto finished = [&]() -> Result<std::shared_ptr<const Catalogue>> {
    try {
      return finish(stop);
    } catch (const std::system_error& error) {  // No threads are left.
      return exhausted(error.what());
    }
  };
  Result<std::shared_ptr<const Catalogue>> made = finished();
  ScanLog* const log = shards_.log.get();
  if (!made && log != nullptr && log->is_writer() &&
      made.error().code() != ErrorCode::kCancelled) {
    (void)log->append(made.error());  // Without it others find the error.
  }
  if (shards_.job != nullptr) shards_.job->leave();
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
  if (shards_.log != nullptr) {
    LEAT_TRY(const auto made, take_logged(stop));
    if (made != nullptr) return made;
  }
  LEAT_TRY_VOID(add_all_known());
  LEAT_TRY_VOID(shards_.job == nullptr ? scan_shards(stop) : scan_in_job(stop));
  LEAT_TRY(BuiltCatalogue built,
           std::move(*all_).finish(inner_, prefix_, shards_.objects, stop));
  LEAT_TRY(const OpenedCatalogue kept,
           keep_catalogue(std::move(built), identity_,
                          shards_.catalogue_options.index.classes, env_));
  if (!kept.note.empty()) log_warning(kept.note);
  if (shards_.log != nullptr && shards_.log->is_writer()) {
    // Others cannot find a catalogue that was not kept, so they make it.
    kept.location.empty() ? shards_.log->leave() : shards_.log->end();
  }
  return kept.catalogue;
}

/// Takes what another process finds until there is a catalogue. Null: the rest
/// is left to this process.
Result<std::shared_ptr<const Catalogue>> ShardStream::take_logged(
    const std::stop_token& stop) {
  const bool was_listed_by_us = shards_.log->is_writer();
  while (true) {
    // Taken first, so that earlier writes are visible.
    const ScanLog::Turn turn = shards_.log->take_turn();
    LEAT_TRY(const auto made, take_new_entries());
    if (made != nullptr) return made;
    if (turn != ScanLog::Turn::kOthers) break;
    MutexLock lock(mutex_);
    changed_.wait_for(lock, stop, kPace, [] { return false; });
    if (stop.stop_requested()) {
      return Error(ErrorCode::kCancelled, "the scan was ended");
    }
  }
  if (!was_listed_by_us)
    LEAT_TRY_VOID(check_listing(inner_, prefix_, shards_.objects, stop));
  return std::shared_ptr<const Catalogue>();
}

/// Returns the catalogue, if the entries end with it.
Result<std::shared_ptr<const Catalogue>> ShardStream::take_new_entries() {
  while (std::optional<ScanEntry> entry = shards_.log->next()) {
    if (entry->kind == ScanEntry::Kind::kFailed) {
      return *std::move(entry->error);
    }
    if (entry->kind == ScanEntry::Kind::kEnd) {
      LEAT_TRY(const auto kept,
               kept_catalogue(identity_,
                              shards_.catalogue_options.index.classes, env_));
      if (kept) return kept->catalogue;
      break;  // Somebody has removed it.
    }
    LEAT_TRY_VOID(add_known(known_shards(), std::move(entry->shard)));
  }
  return std::shared_ptr<const Catalogue>();
}

/// Fills `all_` with the known shards.
Result<void> ShardStream::add_all_known() {
  all_ = std::make_unique<ShardCatalogue>(
      shards_.catalogue_options.index.classes, etag_kind_of(inner_));
  const std::size_t known = known_shards();
  if (known != 0) shards_.log->rewind();
  for (std::size_t i = 0; i < known; ++i) {
    const std::optional<ScanEntry> entry = shards_.log->next();
    if (!entry || entry->kind != ScanEntry::Kind::kShard) {
      return unavailable(
          "what another process of this node had found was changed; start "
          "again");
    }
    LEAT_TRY_VOID(add(i, entry->shard));
  }
  return {};
}

Result<void> ShardStream::scan_shards(const std::stop_token& stop) {
  for (std::size_t i = known_shards(); i < to_scan_.size(); ++i) {
    if (!wants_parts()) break;
    LEAT_TRY(ScannedShard scanned,
             scan_ahead(ahead_, prefix_, to_scan_[i], i, stop));
    LEAT_TRY_VOID(add(i, scanned));
    write_down(shards_.log.get(), scanned, inner_.url_of(prefix_));
    LEAT_TRY_VOID(add_known(i, std::move(scanned)));
  }
  return scan_rest(stop);
}

bool ShardStream::wants_parts() const {
  const MutexLock lock(mutex_);
  return wants_parts_;
}

/// Scans the shards of this rank, and takes those of the others from the job.
Result<void> ShardStream::scan_in_job(const std::stop_token& stop) {
  JobShards shards(
      *shards_.job, to_scan_.size(),
      [this](const TakeShard& take, const std::stop_token& ended) {
        return scan_ours(take, ended);
      },
      [this](std::span<const std::size_t> left, const TakeShard& take,
             const std::stop_token& ended) {
        std::vector<ShardToScan> to_scan;
        for (const std::size_t i : left) to_scan.push_back(to_scan_[i]);
        return scan_all(inner_, prefix_, to_scan,
                        shards_.catalogue_options.index.threads, take, ended);
      });
  for (std::size_t i = known_shards(); i < to_scan_.size(); ++i) {
    LEAT_TRY(ScannedShard scanned, shards.take(i, stop));
    LEAT_TRY_VOID(add(i, scanned));
    LEAT_TRY_VOID(add_known(i, std::move(scanned)));
  }
  return {};
}

Result<void> ShardStream::scan_ours(const TakeShard& take,
                                    const std::stop_token& stop) {
  const Rank rank = shards_.job->rank();
  std::size_t i = rank.rank;
  for (; i < to_scan_.size() && wants_parts(); i += rank.world_size) {
    LEAT_TRY(ScannedShard scanned,
             scan_ahead(ahead_, prefix_, to_scan_[i], i, stop));
    LEAT_TRY_VOID(take(i, std::move(scanned)));
    // Training waited for this one, perhaps; it will say if it does again.
    ahead_.hurry(false);
  }
  if (i >= to_scan_.size()) return {};
  std::vector<ShardToScan> rest;
  const std::size_t first = i;
  for (; i < to_scan_.size(); i += rank.world_size) rest.push_back(to_scan_[i]);
  return scan_all(
      inner_, prefix_, rest, shards_.catalogue_options.index.threads,
      [&](std::size_t index, ScannedShard scanned) {
        return take(first + index * rank.world_size, std::move(scanned));
      },
      stop);
}

/// Reads headers alone, of many shards in parallel.
Result<void> ShardStream::scan_rest(const std::stop_token& stop) {
  const std::size_t from = known_shards();
  if (from == to_scan_.size()) return {};
  return scan_all(
      inner_, prefix_, std::span(to_scan_).subspan(from),
      shards_.catalogue_options.index.threads,
      [&](std::size_t index, const ScannedShard& scanned) -> Result<void> {
        LEAT_TRY_VOID(add(from + index, scanned));
        write_down(shards_.log.get(), scanned, inner_.url_of(prefix_));
        return {};
      },
      stop);
}

std::size_t ShardStream::known_shards() const {
  const MutexLock lock(mutex_);
  return known_.size();
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
  LEAT_TRY(ShardFindings found, find_in(to_scan_[shard], std::move(scanned),
                                        shards_.catalogue_options.index.classes,
                                        etag_kind_of(inner_)));
  const MutexLock lock(mutex_);
  known_.add(std::move(found), wants_parts_);
  tell();
  return {};
}

}  // namespace leat
