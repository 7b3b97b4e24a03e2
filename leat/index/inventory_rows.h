// The rows of an S3 Inventory in CSV.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/index/inventory_manifest.h"
#include "leat/store/store.h"

namespace leat {

/// Takes the text of an inventory file in pieces and keeps the objects below a
/// prefix: latest versions, no delete markers, with decoded keys, without the
/// prefix.
///
/// Threads: one at a time.
class InventoryRows {
 public:
  /// A longer row is invalid: a key has at most 1,024 bytes.
  static constexpr std::size_t kMostRowBytes = 16 << 10;

  InventoryRows(const InventoryColumns& columns, std::string_view prefix,
                std::vector<ObjectInfo>& objects)
      : columns_(columns), prefix_(prefix), objects_(objects) {}

  /// Errors: kCorrupt; names the row
  Result<void> feed(std::string_view text);

  /// Call it at the end of each file. Errors: kCorrupt if it was cut.
  Result<void> finish();

 private:
  enum class State : std::uint8_t { kPlain, kQuoted, kQuoteInQuoted };

  Result<void> take(char c);
  Result<void> end_row();
  Result<void> keep(const std::vector<std::string>& fields);
  Error corrupt(std::string_view why) const;

  const InventoryColumns columns_;
  const std::string_view prefix_;
  std::vector<ObjectInfo>& objects_;
  State state_ = State::kPlain;
  std::size_t row_bytes_ = 0;
  std::uint64_t row_ = 1;
  /// The row's fields; the last is incomplete.
  std::vector<std::string> fields_ = {""};
};

}  // namespace leat
