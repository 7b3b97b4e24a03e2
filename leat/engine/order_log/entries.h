// An order log: the samples that one rank delivered, as bytes.
//
// A file is eight bytes, "leatord1", and entries, one after another,
// little-endian:
//
//     length   4 bytes  of the payload
//     check    1 byte   of the length
//     crc      4 bytes  CRC32C of the payload
//     payload           its first byte is the kind
//
//     1 head   a JSON object: OrderLogHead; the first entry, and no other
//     2 batch  varints: flags (1: starts), epoch, from, to - from, samples;
//              two lists of rows, the padding and the substitutes: how many,
//              then each row less the one before; then the ids
//     3 end    varints: epoch, at, samples of the dataset or 0
//
// Ids are one byte, their form, a varint, their base, and a number of `width`
// bits for each. The form is the width, 1 to 64; plus 128: the number is the
// zigzag of an id less the one before it, the first less the base. Otherwise
// it is the id less the base. So a shuffle of 10^9 samples costs 30 bits an id,
// and samples in their order 2.
//
// A file that ends within an entry belongs to a process that was killed. All
// other damage is an error, since the check and the CRC cover each byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "leat/base/ids.h"
#include "leat/base/result.h"

namespace leat {

inline constexpr std::string_view kOrderLogMagic = "leatord1";

/// The inputs of the order, and which rank of how many writes the log.
struct OrderLogHead {
  Rank rank;
  std::string data;     ///< The digest of the data, as in LoaderState.
  std::string shuffle;  ///< The word of a state: "full", "drawn", ...
  std::uint64_t shuffle_window = 0;
  std::uint64_t seed = 0;
  std::uint64_t global_batch = 0;
  std::string tail;           ///< "drop", "keep" or "pad".
  std::uint64_t samples = 0;  ///< The dataset's; 0: unknown as yet.
  /// Nanoseconds since 1970. It tells which log of a run came later.
  std::uint64_t opened_at = 0;
  friend bool operator==(const OrderLogHead&, const OrderLogHead&) = default;
};

/// One rank's samples of one step.
struct OrderLogBatch {
  /// The first batch, or the first after set_epoch() or load_state(). Any other
  /// follows the batch before it, or begins an epoch.
  bool starts = false;
  std::uint64_t epoch = 0;
  /// The step covers the positions [from, to) of the epoch, over all ranks.
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::vector<SampleId> ids;  ///< In the order of the rows.
  /// Rows that pad the last step (`valid` is false), ascending.
  std::vector<std::uint64_t> padding;
  /// Rows whose sample replaces a bad one, ascending.
  std::vector<std::uint64_t> substitutes;
  friend bool operator==(const OrderLogBatch&, const OrderLogBatch&) = default;
};

/// The epoch had no batch left for this rank.
struct OrderLogEnd {
  std::uint64_t epoch = 0;
  std::uint64_t at = 0;       ///< The position behind its last batch.
  std::uint64_t samples = 0;  ///< As in OrderLogHead.
  friend bool operator==(const OrderLogEnd&, const OrderLogEnd&) = default;
};

using OrderLogEntry = std::variant<OrderLogHead, OrderLogBatch, OrderLogEnd>;

/// The bytes of an entry before its payload.
inline constexpr std::size_t kOrderLogFrame = 9;

/// Appends an entry with its frame.
void append_entry(const OrderLogEntry& entry, std::string& to);

struct OrderLogFrame {
  std::uint32_t length = 0;
  std::uint32_t crc = 0;
};
/// REQUIRES: there are kOrderLogFrame bytes. Errors: kCorrupt
Result<OrderLogFrame> parse_frame(std::span<const std::byte> bytes);
/// The entry in a payload. Takes at most a hundred times its bytes of memory.
/// Errors: kCorrupt: another CRC, not an entry, or of a newer version
Result<OrderLogEntry> parse_entry(const OrderLogFrame& frame,
                                  std::span<const std::byte> payload);

}  // namespace leat
