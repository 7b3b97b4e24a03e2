// The common context of all epochs of a loader.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/mutex.h"
#include "leat/dataset/catalogue.h"
#include "leat/metrics/metrics.h"
#include "leat/pipeline/decoded_form.h"
#include "leat/pipeline/delivered_field.h"
#include "leat/pipeline/excluded_samples.h"
#include "leat/pipeline/program/program.h"
#include "leat/pipeline/slot_pool.h"
#include "leat/plan/dealing.h"
#include "leat/plan/order.h"
#include "leat/plan/shard_homes.h"
#include "leat/plan/steps.h"
#include "leat/runtime/executor.h"
#include "leat/runtime/memory_budget.h"
#include "leat/store/record_cache.h"
#include "leat/store/store.h"
#include "leat/store/use_board.h"

namespace leat {

/// The treatment of a sample that is corrupt or missing.
enum class OnError : std::uint8_t {
  kRaise,       ///< next() fails, naming the key and the cause.
  kSubstitute,  ///< Another sample takes its place: see plan/substitutes.h.
};

/// The shapes and types of fields that only the data determines: the first
/// sample that its ops do not exclude decides, and every other must agree. For
/// a field whose values are joined (value_rows.h) only the type is learnt.
///
/// Threads: any.
class LearnedShapes {
 public:
  struct Shape {
    TensorSpec spec;
    std::string key;  ///< The key of the sample that it was learnt from.
    bool is_text = false;
  };

  std::optional<Shape> find(std::size_t field) const;
  /// The first call for a field wins.
  void learn(std::size_t field, Shape shape);

 private:
  mutable Mutex mutex_;
  std::vector<std::pair<std::size_t, Shape>> shapes_ LEAT_GUARDED_BY(mutex_);
};

/// Ranges of at least twice this are read in parts, each at least this long.
inline constexpr std::uint64_t kUsualPartBytes = 8 << 20;

/// Reads of at least `part_bytes` and less than twice that, of similar lengths:
/// all but the last round up.
constexpr std::uint32_t reads_for(std::uint64_t length_bytes,
                                  std::uint64_t part_bytes) {
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(length_bytes / part_bytes, 1));
}

/// The length of parts: a tuner may change it while ranges are read, each of
/// which asks once. Threads: any.
class PartBytes {
 public:
  std::uint64_t now() const { return bytes_.load(std::memory_order_relaxed); }
  /// REQUIRES: not 0.
  void set(std::uint64_t bytes) {
    bytes_.store(bytes, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> bytes_ = kUsualPartBytes;
};

/// Borrowed by every EpochRun of a loader; all of it must outlive them.
struct RunContext {
  Store& store;
  std::string prefix;  ///< Precedes every key of the catalogue.
  const Catalogue& catalogue;
  const std::vector<DeliveredField>& fields;
  /// Null unless shards are read in pieces.
  std::shared_ptr<const BlockMap> pieces;
  /// Null unless the shuffle has windows.
  std::shared_ptr<const BlockMap> windows;
  Executor& executor;
  MemoryBudget& budget;
  SlotPool& slots;
  Metrics& metrics;
  std::vector<ScratchRef>& scratch;  ///< One for each executor thread.
  LearnedShapes& shapes;
  const PartBytes& part_bytes;
  ExcludedSamples& excluded;
  /// Set once the user knows that memory is short of pieces.
  std::atomic<bool>* said_no_room = nullptr;
  /// Set once the user knows that bytes had not their checksum.
  std::atomic<bool>* said_wrong_bytes = nullptr;
  /// Whether a sample can be read without its piece. A row of a Parquet file
  /// takes its whole row group to read.
  bool can_read_alone = true;
  /// Null if no cache keeps samples decoded.
  DecodedForm* decoded = nullptr;
  /// Null if this node has no cache.
  const RecordCache* cached = nullptr;
  /// Null unless jobs that share the cache announce what they will read.
  UseBoard* board = nullptr;

  /// How the samples of a step are dealt to ranks.
  Locality locality = Locality::kNone;
  /// The ranks that get the samples of each shard; null: see `locality`.
  std::shared_ptr<const ShardHomes> homes = nullptr;
  /// The ranks that share the cache of this rank.
  RankRun readers = {};

  /// The number of the dataset's samples before those of the catalogue, if that
  /// covers a part of it: ids, positions and steps are those of the whole.
  std::uint64_t first_sample = 0;
  std::uint64_t first_step = 0;

  std::uint64_t seed = 0;
  /// Random ops draw by the position in the epoch instead of the sample, which
  /// may come several times.
  bool draws_by_position = false;
  OnError on_error = OnError::kRaise;
  /// Nothing takes the place of a sample that a function passes over either.
  bool keeps_samples = false;
  bool has_hashes = true;
  bool checks_etags = true;
  /// The catalogue has checksums of samples.
  bool has_checksums = false;

  /// Called once for each range, since the result may change.
  std::uint32_t reads_for(std::uint64_t length_bytes) const {
    return leat::reads_for(length_bytes, part_bytes.now());
  }

  /// The number of a sample in the dataset.
  SampleId in_dataset(SampleId sample) const {
    return {first_sample + sample.value};
  }

  void say_wrong_bytes(SampleId sample) const;

  ObjectId object_id(ObjectIndex object) const {
    const ObjectView view = catalogue.object(object);
    return {.key = key_in_store(prefix, view.key),
            .etag = checks_etags ? std::string(view.etag) : std::string(),
            .size_bytes = view.size_bytes};
  }
};

}  // namespace leat
