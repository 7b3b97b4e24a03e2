// Indexes shards while they are read for the first time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/engine/known_shards.h"
#include "leat/engine/unindexed.h"
#include "leat/index/shard_catalogue.h"
#include "leat/store/layers/read_ahead_store.h"

namespace leat {

struct StreamOptions {
  std::uint32_t window_blocks = 16;
  std::uint64_t memory_bytes = 0;  ///< For what is read ahead.
  bool takes_all_fields = false;   ///< A field that comes late is an error.
};

/// How a store reads these shards ahead for a ShardStream with the same
/// options, which it must not outlive in use: see ReadAheadOptions::is_awaited.
ReadAheadOptions read_ahead_options(const UnindexedShards& shards,
                                    std::string_view prefix,
                                    const StreamOptions& stream);

/// Goes through shards from front to back and gives out the parts whose order
/// is known (Shuffle::kStream), each with a catalogue of its own; at the end
/// keeps the catalogue of all, the same file that `leat index` makes. Design:
/// docs/design/0005, 0009 and, for several ranks, 0011.
///
/// If another process of this node scans, it takes that one's findings from the
/// log, and its place if that one dies or leaves.
///
/// Threads:  any; take() and take_rest() one at a time.
/// Lifetime: `ahead` outlives it, made with read_ahead_options() of the same.
///           Destruction ends what it does.
class ShardStream {
 public:
  /// Begins to scan. Parts are read through `ahead`; `store` says where they
  /// lie.
  ShardStream(ReadAheadStore& ahead, const OpenedStore& store,
              UnindexedShards shards, StreamOptions options, const Env& env);
  ~ShardStream();
  ShardStream(const ShardStream&) = delete;
  ShardStream& operator=(const ShardStream&) = delete;

  /// The part that begins with the window of `position`, the first one that no
  /// step of earlier parts covers; nullopt while less than `global_batch`
  /// samples of it are known. Lets go of the bytes before it.
  ///
  /// The first part is as small as can be; others have all that is known.
  /// REQUIRES: positions rise, from 0 on; not after a part that is_last.
  /// Errors:
  ///   kInvalidArgument  a field that the first part does not have, if all are
  ///                     wanted
  ///   others            why shards behind the parts given cannot be indexed
  Result<std::optional<StreamPart>> take(std::uint64_t position,
                                         std::uint64_t global_batch);
  /// True once take() gave a part.
  bool has_given() const;

  /// No more parts are wanted: the rest is indexed by headers alone.
  void take_rest();

  /// The catalogue of all once there is one; null before.
  ///
  /// Errors: as build_catalogue()
  Result<std::shared_ptr<const Catalogue>> catalogue() const;

  /// Waits for news: more shards, the catalogue, an error.
  void wait_within(Nanoseconds timeout);
  /// Nothing that is held will be read again.
  void let_go();
  /// Ends the scan: threads that wait for it go on soon.
  void stop();

 private:
  void run(const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> finish(const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> take_logged(
      const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> take_new_entries();
  Result<void> check_listing(const std::stop_token& stop);
  Result<void> add_all_known();
  Result<void> scan_shards(const std::stop_token& stop);
  Result<void> scan_rest(const std::stop_token& stop);
  Result<void> add(std::size_t shard, const ScannedShard& scanned);
  void write_down(const ScannedShard& scanned);
  Result<void> add_known(std::size_t shard, ScannedShard scanned);
  std::size_t known_shards() const;
  bool wait(const std::stop_token& stop);
  Result<void> check_fields(std::size_t shard) LEAT_REQUIRES(mutex_);
  void tell() LEAT_REQUIRES(mutex_);

  ReadAheadStore& ahead_;
  Store& inner_;  // The store of `ahead_`.
  const std::string prefix_;
  const std::string identity_;
  const UnindexedShards shards_;
  const std::vector<ShardToScan> to_scan_;
  const StreamOptions options_;
  const Env env_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<ShardCatalogue> all_;  ///< The scan's own: of who scans.
  KnownShards known_ LEAT_GUARDED_BY(mutex_);
  /// The first part's; nullopt: none was given.
  std::optional<std::size_t> first_fields_ LEAT_GUARDED_BY(mutex_);
  bool wants_parts_ LEAT_GUARDED_BY(mutex_) = true;
  bool has_news_ LEAT_GUARDED_BY(mutex_) = false;
  std::optional<Error> failed_ LEAT_GUARDED_BY(mutex_);
  std::shared_ptr<const Catalogue> catalogue_ LEAT_GUARDED_BY(mutex_);
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
