#include "leat/engine/order_log/entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "leat/base/buffer.h"
#include "leat/base/check.h"
#include "leat/base/errors.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

constexpr std::uint8_t kHead = 1;
constexpr std::uint8_t kBatch = 2;
constexpr std::uint8_t kEnd = 3;

constexpr int kVersion = 1;
constexpr std::uint8_t kStarts = 1;
constexpr std::uint8_t kDeltas = 128;
/// The rank and the world size of a head are below it.
constexpr std::uint64_t kMostRanks = std::uint64_t{1} << 20;

Error damaged(std::string_view why) { return corrupt(std::string(why)); }

// --- Numbers ----------------------------------------------------------------

void put_varint(std::uint64_t value, std::string& to) {
  while (value >= 128) {
    to.push_back(static_cast<char>(value | 128));
    value >>= 7;
  }
  to.push_back(static_cast<char>(value));
}

void put_u32(std::uint32_t value, std::string& to) {
  for (int shift = 0; shift < 32; shift += 8) {
    to.push_back(static_cast<char>(value >> shift));
  }
}

std::uint32_t u32_at(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) {
    value = (value << 8) | std::to_integer<std::uint32_t>(bytes[i]);
  }
  return value;
}

/// No byte of the length can change without it: the factors are odd.
std::uint8_t check_of(std::uint32_t length) {
  const std::uint32_t sum = 0x5a + 3 * (length & 255) +
                            5 * (length >> 8 & 255) + 7 * (length >> 16 & 255) +
                            9 * (length >> 24);
  return static_cast<std::uint8_t>(sum);
}

std::uint64_t zigzag(std::uint64_t difference) {
  return (difference << 1) ^ (0 - (difference >> 63));
}
std::uint64_t unzigzag(std::uint64_t folded) {
  return (folded >> 1) ^ (0 - (folded & 1));
}

/// Takes numbers from the front of bytes. After a failure it has none.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> left() const { return bytes_; }
  bool has_failed() const { return has_failed_; }

  std::uint8_t byte() {
    if (bytes_.empty()) return fail();
    const auto value = std::to_integer<std::uint8_t>(bytes_[0]);
    bytes_ = bytes_.subspan(1);
    return value;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      if (shift == 63 && next > 1) return fail();
      value |= std::uint64_t{next & 127U} << shift;
      if (next < 128) return value;
    }
    return fail();
  }

 private:
  std::uint8_t fail() {
    has_failed_ = true;
    bytes_ = {};
    return 0;
  }

  std::span<const std::byte> bytes_;
  bool has_failed_ = false;
};

// --- Ids --------------------------------------------------------------------

unsigned width_of(std::uint64_t largest) {
  return std::max(1U, static_cast<unsigned>(std::bit_width(largest)));
}

/// The numbers of one form, before they are packed.
struct Packing {
  std::uint8_t form = 1;
  std::uint64_t base = 0;
};

Packing packing_of(std::span<const SampleId> ids) {
  if (ids.empty()) return {};
  const auto [least, most] = std::ranges::minmax_element(ids);
  // A base that saves no bit is not worth its bytes.
  const unsigned from_zero = width_of(most->value);
  const unsigned from_least = width_of(most->value - least->value);
  std::uint64_t widest = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    widest = std::max(widest, zigzag(ids[i].value - ids[i - 1].value));
  }
  const unsigned of_deltas = width_of(widest);
  const unsigned narrowest = std::min({from_zero, from_least, of_deltas});
  if (narrowest == from_zero) return {static_cast<std::uint8_t>(from_zero), 0};
  if (narrowest == from_least) {
    return {static_cast<std::uint8_t>(from_least), least->value};
  }
  return {static_cast<std::uint8_t>(of_deltas | kDeltas), ids[0].value};
}

void put_ids(std::span<const SampleId> ids, std::string& to) {
  const Packing packing = packing_of(ids);
  to.push_back(static_cast<char>(packing.form));
  put_varint(packing.base, to);
  const unsigned width = packing.form & 127U;
  std::uint64_t before = packing.base;
  std::uint64_t bits = 0;  // The low `held` bits wait for a whole byte.
  unsigned held = 0;
  for (const SampleId id : ids) {
    std::uint64_t value = id.value - before;
    if ((packing.form & kDeltas) != 0) {
      value = zigzag(value);
      before = id.value;
    }
    for (unsigned left = width; left > 0;) {
      const unsigned taken = std::min(left, 8 - held);
      bits |= (value & ((1U << taken) - 1)) << held;
      value >>= taken;
      left -= taken;
      held += taken;
      if (held == 8) {
        to.push_back(static_cast<char>(bits));
        bits = held = 0;
      }
    }
  }
  if (held != 0) to.push_back(static_cast<char>(bits));
}

/// `width` bits from bit `at` on.
std::uint64_t bits_at(std::span<const std::byte> bytes, std::uint64_t at,
                      unsigned width) {
  std::uint64_t value = 0;
  for (unsigned have = 0; have < width;) {
    const auto shift = static_cast<unsigned>(at % 8);
    const unsigned taken = std::min(8 - shift, width - have);
    const auto byte = std::to_integer<std::uint64_t>(bytes[at / 8]);
    value |= ((byte >> shift) & ((1U << taken) - 1)) << have;
    have += taken;
    at += taken;
  }
  return value;
}

std::optional<std::vector<SampleId>> ids_in(Cursor& cursor,
                                            std::uint64_t count) {
  const std::uint8_t form = cursor.byte();
  const std::uint64_t base = cursor.varint();
  const unsigned width = form & 127U;
  const std::span<const std::byte> packed = cursor.left();
  // The first test keeps the second from wrapping around.
  if (cursor.has_failed() || width == 0 || width > 64 ||
      count > packed.size() * 8 || packed.size() != (count * width + 7) / 8) {
    return std::nullopt;
  }
  std::vector<SampleId> ids;
  ids.reserve(count);
  std::uint64_t before = base;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t value = bits_at(packed, i * width, width);
    const bool is_delta = (form & kDeltas) != 0;
    ids.push_back({before + (is_delta ? unzigzag(value) : value)});
    if (is_delta) before = ids.back().value;
  }
  return ids;
}

void put_rows(std::span<const std::uint64_t> rows, std::string& to) {
  put_varint(rows.size(), to);
  std::uint64_t before = 0;
  for (const std::uint64_t row : rows) {
    put_varint(row - before, to);
    before = row;
  }
}

/// Rows below `count`, ascending.
std::optional<std::vector<std::uint64_t>> rows_in(Cursor& cursor,
                                                  std::uint64_t count) {
  const std::uint64_t rows = cursor.varint();
  if (rows > count || rows > cursor.left().size()) return std::nullopt;
  std::vector<std::uint64_t> found;
  found.reserve(rows);
  std::uint64_t row = 0;
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t step = cursor.varint();
    if (cursor.has_failed() || step >= count || (i > 0 && step == 0)) {
      return std::nullopt;
    }
    row += step;
    if (row >= count) return std::nullopt;
    found.push_back(row);
  }
  return found;
}

// --- Entries ----------------------------------------------------------------

void put(const OrderLogHead& head, std::string& to) {
  to.push_back(kHead);
  to += nlohmann::ordered_json({{"leat_order_log", kVersion},
                                {"rank", head.rank.rank},
                                {"world_size", head.rank.world_size},
                                {"data", head.data},
                                {"shuffle", head.shuffle},
                                {"shuffle_window", head.shuffle_window},
                                {"seed", head.seed},
                                {"global_batch_size", head.global_batch},
                                {"tail", head.tail},
                                {"samples", head.samples},
                                {"opened_at", head.opened_at}})
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void put(const OrderLogBatch& batch, std::string& to) {
  to.push_back(kBatch);
  to.push_back(batch.starts ? kStarts : 0);
  put_varint(batch.epoch, to);
  put_varint(batch.from, to);
  put_varint(batch.to - batch.from, to);
  put_varint(batch.ids.size(), to);
  put_rows(batch.padding, to);
  put_rows(batch.substitutes, to);
  put_ids(batch.ids, to);
}

void put(const OrderLogEnd& end, std::string& to) {
  to.push_back(kEnd);
  put_varint(end.epoch, to);
  put_varint(end.at, to);
  put_varint(end.samples, to);
}

/// Reads the fields of a head. Remembers the name of a field that is missing or
/// of another type.
class HeadFields {
 public:
  explicit HeadFields(const nlohmann::json& json) : json_(json) {}

  std::uint64_t number(const char* name) {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_number_unsigned()) {
      return found->get<std::uint64_t>();
    }
    missing_ = name;
    return 0;
  }
  std::string text(const char* name) {
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_string()) {
      return found->get<std::string>();
    }
    missing_ = name;
    return {};
  }
  const std::string& missing() const { return missing_; }

 private:
  const nlohmann::json& json_;
  std::string missing_;
};

Result<OrderLogEntry> head_in(std::span<const std::byte> payload) {
  const nlohmann::json json = nlohmann::json::parse(as_text(payload), nullptr,
                                                    /*allow_exceptions=*/false);
  if (!json.is_object()) return damaged("its head is not a JSON object");
  HeadFields fields(json);
  const std::uint64_t version = fields.number("leat_order_log");
  if (fields.missing().empty() && version != kVersion) {
    return damaged(fmt::format(
        "it is of version {}, and this leat reads version {}; use the leat "
        "that wrote it, or a newer one",
        version, kVersion));
  }
  const std::uint64_t rank = fields.number("rank");
  const std::uint64_t world_size = fields.number("world_size");
  OrderLogHead head{
      .rank = {.rank = static_cast<std::uint32_t>(rank),
               .world_size = static_cast<std::uint32_t>(world_size)},
      .data = fields.text("data"),
      .shuffle = fields.text("shuffle"),
      .shuffle_window = fields.number("shuffle_window"),
      .seed = fields.number("seed"),
      .global_batch = fields.number("global_batch_size"),
      .tail = fields.text("tail"),
      .samples = fields.number("samples"),
      .opened_at = fields.number("opened_at")};
  if (!fields.missing().empty()) {
    return damaged(
        fmt::format("\"{}\" of its head is missing or of another "
                    "type",
                    fields.missing()));
  }
  if (world_size >= kMostRanks || rank >= world_size) {
    return damaged(
        fmt::format("its head names rank {} of {}", rank, world_size));
  }
  return head;
}

Result<OrderLogEntry> batch_in(Cursor cursor) {
  const std::uint8_t flags = cursor.byte();
  OrderLogBatch batch{.starts = flags == kStarts,
                      .epoch = cursor.varint(),
                      .from = cursor.varint()};
  const std::uint64_t span = cursor.varint();
  batch.to = batch.from + span;
  const std::uint64_t count = cursor.varint();
  if (flags > kStarts || batch.to <= batch.from || count == 0) {
    return damaged("a batch in it is none");
  }
  auto padding = rows_in(cursor, count);
  auto substitutes = rows_in(cursor, count);
  auto ids = ids_in(cursor, count);
  if (!padding || !substitutes || !ids) return damaged("a batch in it is none");
  batch.padding = *std::move(padding);
  batch.substitutes = *std::move(substitutes);
  batch.ids = *std::move(ids);
  return batch;
}

Result<OrderLogEntry> end_in(Cursor cursor) {
  const OrderLogEnd end{.epoch = cursor.varint(),
                        .at = cursor.varint(),
                        .samples = cursor.varint()};
  if (cursor.has_failed() || !cursor.left().empty()) {
    return damaged("an end of an epoch in it is none");
  }
  return end;
}

}  // namespace

void append_entry(const OrderLogEntry& entry, std::string& to) {
  const std::size_t begin = to.size();
  to.append(kOrderLogFrame, '\0');
  std::visit([&](const auto& one) { put(one, to); }, entry);
  const std::string_view payload =
      std::string_view(to).substr(begin + kOrderLogFrame);
  LEAT_CHECK(payload.size() < (std::uint64_t{1} << 32));
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::string frame;
  put_u32(length, frame);
  frame.push_back(static_cast<char>(check_of(length)));
  put_u32(crc32c(as_bytes(payload)), frame);
  to.replace(begin, kOrderLogFrame, frame);
}

Result<OrderLogFrame> parse_frame(std::span<const std::byte> bytes) {
  const OrderLogFrame frame{.length = u32_at(bytes),
                            .crc = u32_at(bytes.subspan(5))};
  if (std::to_integer<std::uint8_t>(bytes[4]) != check_of(frame.length)) {
    return damaged("the length of an entry has another check");
  }
  return frame;
}

Result<OrderLogEntry> parse_entry(const OrderLogFrame& frame,
                                  std::span<const std::byte> payload) {
  if (payload.size() != frame.length || crc32c(payload) != frame.crc) {
    return damaged("an entry has another CRC");
  }
  if (payload.empty()) return damaged("an entry is empty");
  const std::span<const std::byte> rest = payload.subspan(1);
  switch (std::to_integer<std::uint8_t>(payload[0])) {
    case kHead:
      return head_in(rest);
    case kBatch:
      return batch_in(Cursor(rest));
    case kEnd:
      return end_in(Cursor(rest));
    default:
      return damaged("an entry is of a kind that this leat does not know");
  }
}

}  // namespace leat
