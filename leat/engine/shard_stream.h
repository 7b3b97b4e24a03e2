// Indexes shards while they are first read.
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
#include "leat/index/scan_all.h"
#include "leat/index/shard_catalogue.h"
#include "leat/store/layers/read_ahead_store.h"

namespace leat {

struct StreamOptions {
  std::uint32_t window_blocks = 16;
  std::uint64_t memory_bytes = 0;  ///< For reading ahead.
  bool takes_all_fields = false;   ///< A field that comes late is an error.
};

/// The options with which a store reads these shards ahead for a ShardStream of
/// the same options, which must outlive that: see ReadAheadOptions::is_awaited.
ReadAheadOptions read_ahead_options(const UnindexedShards& shards,
                                    std::string_view prefix,
                                    const StreamOptions& stream);

/// Goes through shards from front to back and gives out the parts whose order
/// is known (Shuffle::kStream), each with its own catalogue. At the end it
/// keeps the catalogue of all, the same file that `leat index` makes. Design:
/// docs/design/0005, 0009 and, for several ranks, 0011.
///
/// If another process of this node scans, it takes that process's findings from
/// the log, and takes over if that process dies or leaves. If the ranks of the
/// job scan together, it scans the shards of this rank and takes the findings
/// of the others (index/job_scan.h).
///
/// Threads: any; take() and take_rest() one at a time. Lifetime: `ahead` must
/// outlive it, made with read_ahead_options() of the same.
///           Destruction stops its work.
class ShardStream {
 public:
  /// Begins to scan. Parts are read through `ahead`; `store` says where they
  /// are stored.
  ShardStream(ReadAheadStore& ahead, const OpenedStore& store,
              UnindexedShards shards, StreamOptions options, const Env& env);
  ~ShardStream();
  ShardStream(const ShardStream&) = delete;
  ShardStream& operator=(const ShardStream&) = delete;

  /// The part that begins with the window of `position`, which is the first
  /// that no step of earlier parts covers; nullopt while less than
  /// `global_batch` samples of it are known. Releases the bytes before it.
  ///
  /// The first part is as small as possible; later ones have all that is known.
  /// REQUIRES: positions rise, from 0 on; no call follows a part that is_last.
  /// Errors:
  ///   kInvalidArgument  a field that the first part does not have, if all are
  ///                     wanted
  ///   others the reason why later shards cannot be indexed
  Result<std::optional<StreamPart>> take(std::uint64_t position,
                                         std::uint64_t global_batch);
  /// True once take() has returned a part.
  bool has_given() const;

  /// No more parts are wanted: the rest is indexed by headers alone.
  void take_rest();

  /// The catalogue of all shards once there is one; null before.
  ///
  /// Errors: as build_catalogue()
  Result<std::shared_ptr<const Catalogue>> catalogue() const;

  /// Waits for news: more shards, the catalogue, an error.
  /// An onlooker leaves them there for others.
  void wait_within(Nanoseconds timeout, bool is_onlooker = false);
  /// The held bytes will not be read again.
  void let_go();
  /// Ends the scan: threads that wait for it return soon.
  void stop();

 private:
  void run(const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> finish(const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> take_logged(
      const std::stop_token& stop);
  Result<std::shared_ptr<const Catalogue>> take_new_entries();
  Result<void> add_all_known();
  Result<void> scan_shards(const std::stop_token& stop);
  Result<void> scan_in_job(const std::stop_token& stop);
  Result<void> scan_ours(const TakeShard& take, const std::stop_token& stop);
  bool wants_parts() const;
  Result<void> scan_rest(const std::stop_token& stop);
  Result<void> add(std::size_t shard, const ScannedShard& scanned);
  Result<void> add_known(std::size_t shard, ScannedShard scanned);
  std::size_t known_shards() const;
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
  std::unique_ptr<ShardCatalogue> all_;  ///< Used by the scanning one alone.
  KnownShards known_ LEAT_GUARDED_BY(mutex_);
  /// The first part's; nullopt: there was none.
  std::optional<std::size_t> first_fields_ LEAT_GUARDED_BY(mutex_);
  bool wants_parts_ LEAT_GUARDED_BY(mutex_) = true;
  bool has_news_ LEAT_GUARDED_BY(mutex_) = false;
  std::optional<Error> failed_ LEAT_GUARDED_BY(mutex_);
  std::shared_ptr<const Catalogue> catalogue_ LEAT_GUARDED_BY(mutex_);
  std::jthread thread_;  // Last: joined before the rest dies.
};

}  // namespace leat
