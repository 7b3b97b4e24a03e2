// A store of objects that are made from parts of another store's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/mutex.h"
#include "leat/runtime/executor.h"
#include "leat/store/layers/derived_key.h"
#include "leat/store/store_wrapper.h"

namespace leat {

/// Makes objects from parts of others, such as the values of a row group of a
/// Parquet file. Threads: any, several at a time.
class Derivation {
 public:
  virtual ~Derivation() = default;
  /// `notes` and `bytes` are the ranges that the key names. Blocks.
  ///
  /// Errors: kCorrupt if they do not match the key; any other
  virtual Result<Buffer> derive(const DerivedKey& key,
                                std::span<const std::byte> notes,
                                std::span<const std::byte> bytes) const = 0;
};

struct DerivedStoreOptions {
  /// Bounds what is held at a time: bytes read, objects being made, and made
  /// ones that may be wanted again, of which the least recently used goes
  /// first. A larger object is held alone.
  std::uint64_t most_bytes = 512 << 20;
  /// A source of more than twice this length is read in parts.
  std::uint64_t part_bytes = 8 << 20;
  /// Those that make objects.
  std::size_t threads = 2;
};

/// Answers reads of a DerivedKey from the output of `derivation`, which is made
/// once for all readers while it is held. Other reads are passed on. Objects
/// are made in the order in which they were first requested.
///
/// Warns once if objects are made again and again because too few of them
/// fit.
///
/// Threads: any. Lifetime: see Store. Destruction cancels reads that nobody
/// waits for.
class DerivedStore final : public StoreWrapper {
 public:
  DerivedStore(std::unique_ptr<Store> inner,
               std::shared_ptr<const Derivation> derivation,
               DerivedStoreOptions options);
  ~DerivedStore() override;
  DerivedStore(const DerivedStore&) = delete;
  DerivedStore& operator=(const DerivedStore&) = delete;

  /// Errors, for a DerivedKey: kCorrupt if it, its source or the made object
  /// does not match; kInvalidArgument as in Store; those of the inner store,
  /// and of the derivation.
  void read(ReadRequest request, std::stop_token stop, ReadDone done) override;
  /// The source's, with the size of the made object.
  Result<ObjectInfo> stat(std::string_view key, std::stop_token stop) override;
  std::string url_of(std::string_view key) const override;
  std::string name_of(std::string_view key) const override;
  bool names_version(std::string_view key) const override;

  /// Objects that were made so far.
  std::uint64_t made() const;

 private:
  struct Wait;
  struct Made;
  using MadeRef = std::shared_ptr<Made>;

  void begin_what_fits();
  MadeRef take_next() LEAT_REQUIRES(mutex_);
  bool take_notes(Made& made);
  void begin(const MadeRef& made);
  void arrive(const MadeRef& made, Result<void> result);
  void finish(const MadeRef& made);
  std::optional<Error> make(Made& made) const;
  std::vector<std::shared_ptr<Wait>> settle(const MadeRef& made, bool is_good);
  void keep_notes(Made& made) LEAT_REQUIRES(mutex_);
  void let_go_oldest() LEAT_REQUIRES(mutex_);
  bool comes_back(const std::string& key) LEAT_REQUIRES(mutex_);
  void stopped_waiting(const std::shared_ptr<Wait>& wait);

  const std::shared_ptr<const Derivation> derivation_;
  const DerivedStoreOptions options_;
  std::stop_source stop_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, MadeRef, std::less<>> known_ LEAT_GUARDED_BY(mutex_);
  std::deque<MadeRef> queue_ LEAT_GUARDED_BY(mutex_);  // Not yet begun.
  std::list<MadeRef> there_ LEAT_GUARDED_BY(mutex_);   // Last used, last.
  std::uint64_t held_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::size_t under_way_ LEAT_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<Buffer>> notes_ LEAT_GUARDED_BY(mutex_);
  std::uint64_t notes_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
  std::deque<std::string> let_go_ LEAT_GUARDED_BY(mutex_);  // The latest.
  std::size_t again_ LEAT_GUARDED_BY(mutex_) = 0;
  std::uint64_t made_ LEAT_GUARDED_BY(mutex_) = 0;
  Executor executor_;  // Last: its threads end before the rest is destroyed.
};

}  // namespace leat
