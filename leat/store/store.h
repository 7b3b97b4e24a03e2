// The way bytes enter the process.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/clock.h"
#include "leat/base/result.h"

namespace leat {

/// A store's description of an object.
struct ObjectInfo {
  std::string key;
  std::uint64_t size_bytes = 0;
  /// The version's tag as the store gives it, quotes included; may be empty.
  std::string etag{};
  /// The time of its last write, if stat() tells it; else the epoch.
  std::chrono::sys_seconds modified_at{};
};

/// Which object, and which version of it.
struct ObjectId {
  std::string key;
  /// If not empty, a read of any other version is kCorrupt.
  std::string etag{};
  /// If given, a read of an object of another size is kCorrupt, where the store
  /// learns the size. Without ETags this alone tells versions apart.
  std::optional<std::uint64_t> size_bytes{};
};

/// Which part of a cache had the bytes of a read.
enum class CacheLevel : std::uint8_t { kRam, kDisk, kPeer };

/// Hears why a read is taking its time. Lent to the read until it is done.
/// Threads: called from threads of the store, one call at a time; is_awaited()
/// at any time.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;
  /// The read waits from `from` until `until` before it is sent again.
  virtual void backs_off(TimePoint from, TimePoint until) = 0;
  /// The read waited from `from` until `until` because the service throttles.
  virtual void held_back(TimePoint /*from*/, TimePoint /*until*/) {}
  /// Training waits for the bytes now.
  virtual bool is_awaited() const { return false; }
  /// A cache looked for the bytes, or took them, from `from` until `until`.
  virtual void cache_looked(TimePoint /*from*/, TimePoint /*until*/) {}
  /// A peer was asked for the bytes from `from` until `until`.
  virtual void peer_asked(TimePoint /*from*/, TimePoint /*until*/) {}
  /// Another job that shares a cache was to bring the bytes, from `from` until
  /// `until`.
  virtual void other_job_awaited(TimePoint /*from*/, TimePoint /*until*/) {}
  /// A cache had the `bytes` bytes of the read; called before its `done`.
  virtual void cache_had(CacheLevel /*level*/, std::uint64_t /*bytes*/) {}
};

/// When a range is wanted, for caches to keep what is wanted soonest. Times are
/// those of plan/next_use.h.
struct ReadHint {
  std::uint64_t now = 0;
  std::uint64_t next_use = 0;
  /// False: caches are asked for it, but do not keep it. The reader keeps parts
  /// of it itself: see record_cache.h.
  bool is_offered = true;
  /// The number of the sample, if the range is of one alone: jobs that share a
  /// cache tell each other by it.
  std::optional<std::uint64_t> sample = std::nullopt;
};

struct ReadRequest {
  ObjectId object;
  std::uint64_t offset = 0;
  /// Filled whole, or the read failed. The store's until `done` runs.
  std::span<std::byte> into{};
  ReadObserver* observer = nullptr;
  /// Without it a cache is passed by.
  std::optional<ReadHint> hint{};
  /// 0 for the first try; layers that send again count up.
  std::uint32_t attempt = 0;
};

/// Called exactly once, when the last byte that will ever be written has been.
using ReadDone = std::function<void(Result<void>)>;

/// The start of a listing, and how it groups.
struct ListRequest {
  std::string prefix{};
  /// Only keys after this one, in byte order.
  std::string start_after{};
  /// The token of the page before, to go on from; wins over `start_after`.
  std::string resume{};
  /// Keys that contain this after the prefix are folded into
  /// `ListPage::common_prefixes`; empty for no folding.
  std::string delimiter{};
};

struct ListPage {
  std::vector<ObjectInfo> objects;  ///< In byte order of their keys.
  std::vector<std::string> common_prefixes;
  std::string resume;  ///< Empty on the last page.
  /// False: the store lists in no order, and so a page may have keys between
  /// those of another.
  bool is_sorted = true;
};

/// The planner's assumptions about a store. Facts, never configuration.
struct StoreTraits {
  /// Reads of at least this many bytes get the store's full rate.
  std::uint64_t best_read_bytes = 8 << 20;
  bool can_list = true;
  bool can_write = true;
  /// True if `ObjectInfo::etag` is filled and checked.
  bool has_etags = true;
  /// False: pages come in an order of the store's own, and a listing that
  /// starts after a key costs as much as one from the beginning.
  bool lists_in_order = true;
};

/// A place that holds immutable objects under string keys.
///
/// Bytes enter the process here and nowhere else. A store does one thing: one
/// range of one object, once. Retrying, limiting and counting are stores that
/// wrap another store (see store/layers/).
///
/// Threads:  any method, from any thread, at any time.
/// Lifetime: outlives every read it accepted. Destroying a store with reads in
///           flight is a bug and aborts.
class Store {
 public:
  virtual ~Store() = default;

  /// Starts reading the range at `request.offset` that fills `request.into`;
  /// returns at once.
  ///
  /// A short read is an error. `done` runs on one of the store's threads, or
  /// before this returns, and must not block.
  ///
  /// Errors:
  ///   kNotFound          no object has this key, or there is no such bucket
  ///   kPermissionDenied  the store refuses who is asking
  ///   kInvalidArgument   the range is empty or runs past the end
  ///   kThrottled         the service asks for fewer requests
  ///   kUnavailable       the service failed and may recover
  ///   kDeadlineExceeded  no byte came for too long
  ///   kCorrupt           the object is not of the version asked for
  ///   kCancelled         `stop` fired first
  virtual void read(ReadRequest request, std::stop_token stop,
                    ReadDone done) = 0;

  /// One page of keys under `request.prefix`, in byte order. Blocks. The pages
  /// are in order too, unless ListPage::is_sorted says otherwise.
  ///
  /// Errors: as read; kInvalidArgument if the store cannot list.
  virtual Result<ListPage> list(const ListRequest& request,
                                std::stop_token stop) = 0;

  /// Puts a whole object; it is seen whole or not at all. Blocks.
  ///
  /// Errors: as read; kInvalidArgument if the store cannot write.
  virtual Result<ObjectInfo> write(std::string_view key,
                                   std::span<const std::byte> bytes,
                                   std::stop_token stop) = 0;

  /// Size, ETag and time of an object. Blocks.
  virtual Result<ObjectInfo> stat(std::string_view key,
                                  std::stop_token stop) = 0;

  /// Constant for the life of the store.
  virtual StoreTraits traits() const = 0;

  /// The URL of an object, for messages; never holds credentials.
  virtual std::string url_of(std::string_view key) const = 0;

  /// Tells an object from all others of the service, for caches. Objects that
  /// are made from one have its URL, and names of their own.
  virtual std::string name_of(std::string_view key) const {
    return url_of(key);
  }
  /// True if no other version of the object has this name.
  virtual bool names_version(std::string_view) const { return false; }
};

/// For stores: whether the object, which has that many bytes, is of the size
/// asked for.
///
/// Errors: kCorrupt
Result<void> check_object_size(const ObjectId& object, std::uint64_t has_bytes);

/// Reads a whole object into memory. Blocks: for small things, off the hot
/// path.
///
/// Errors: as Store::read; kResourceExhausted past `most_bytes`.
Result<Buffer> read_object(Store& store, std::string_view key,
                           std::uint64_t most_bytes, std::stop_token stop);

/// Reads one range and waits for it.
Result<void> read_range(Store& store, ReadRequest request,
                        std::stop_token stop);

}  // namespace leat
