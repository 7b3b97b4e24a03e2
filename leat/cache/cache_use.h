// A use of a record, and the writes that follow from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/cache/record_key.h"
#include "leat/cache/tier_plan.h"
#include "leat/store/store.h"

namespace leat {

/// A record that was read or made, as decisions about it see it.
struct CacheUse {
  RecordKey key;
  ReadHint hint;
  std::span<const std::byte> bytes;
  bool has_version = true;  ///< The key tells the object's version too.
  bool is_made = false;     ///< From the bytes of a range.
  /// The record that is dropped once this one is taken.
  std::optional<RecordKey> instead_of = std::nullopt;
};

/// The steps that follow from one decision.
struct CacheWrite {
  std::vector<TierStep> steps = {};
  AccessTime now = 0;
  RecordKey key = {};
  std::span<const std::byte> body = {};  ///< For a kPut.
  BufferRef bytes = nullptr;  ///< The memory of `body`; null: it is borrowed.
  bool* is_done = nullptr;    ///< Set for a thread that waits for its turn.
  /// The level whose set_share() this completes, once the steps are done.
  std::optional<std::size_t> shared = std::nullopt;
  std::optional<std::uint64_t> share = std::nullopt;
};

}  // namespace leat
