// Records that caches keep of data made from a range, beside the bytes
// themselves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>

#include "leat/base/hash.h"
#include "leat/store/store.h"

namespace leat {

/// A record of a range: its bytes, or what was made from them.
struct RecordId {
  ObjectId object;
  std::uint64_t offset = 0;
  /// The length of the range, not of the record.
  std::uint64_t length_bytes = 0;
  /// The operations that made the record from the bytes, with all their
  /// parameters. Nullopt: none; reads of the range use this record.
  std::optional<Hash128> made_by{};
};

struct FindRequest {
  RecordId id;
  /// Filled completely with the record, or undefined.
  std::span<std::byte> into{};
  /// Notified only of the look-up.
  ReadObserver* observer = nullptr;
  ReadHint hint;
};

/// Called exactly once: with the level that had the record, or nullopt if no
/// level has it intact.
using FindDone = std::function<void(std::optional<CacheLevel>)>;

/// A cache for which callers make records. A Store that is a cache looks up and
/// fills by itself; here callers do: they look first, and offer the record that
/// they have made.
///
/// Threads: any.
class RecordCache {
 public:
  virtual ~RecordCache() = default;

  /// The length of a record, if it seems to be present. No I/O.
  virtual std::optional<std::uint64_t> record_bytes(
      const RecordId& id) const = 0;

  /// Looks up a record; returns immediately. `into` and `observer` are borrowed
  /// until `done` runs, on a thread of the cache; it must not block.
  /// REQUIRES: into.size() is the length that record_bytes() returned.
  virtual void find(FindRequest request, std::stop_token stop,
                    FindDone done) = 0;

  /// Offers a record, which is copied if it is accepted. Accepting a made
  /// record drops the record of the same range's bytes. Waits for no disk and
  /// no store.
  virtual void keep(const RecordId& id, std::span<const std::byte> record,
                    const ReadHint& hint) = 0;

  /// Asks which process, of all that share the cache, makes a missing record.
  /// `decided` is called exactly once, immediately or on a thread of the cache,
  /// and must not block. True: another process has made it by now. False: the
  /// caller makes it, and then calls keep(), or end_turn() if nothing is kept.
  virtual void take_turn(const RecordId& id, std::stop_token stop,
                         std::function<void(bool is_there)> decided) = 0;
  virtual void end_turn(const RecordId& id) = 0;
  /// Whether another process has its turn now.
  virtual bool is_coming(const RecordId& id) const = 0;
};

}  // namespace leat
