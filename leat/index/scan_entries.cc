#include "leat/index/scan_entries.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"

namespace leat {
namespace {

static_assert(std::endian::native == std::endian::little,
              "entries are little-endian, and numbers are copied");

/// Puts numbers and texts one after the other.
class Packer {
 public:
  void add(std::uint64_t number) {
    std::array<char, sizeof(number)> bytes;
    std::memcpy(bytes.data(), &number, sizeof(number));
    packed_.append(bytes.data(), bytes.size());
  }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    packed_.append(text);
  }
  void add(const std::vector<ObjectInfo>& objects) {
    add(std::uint64_t{objects.size()});
    for (const ObjectInfo& object : objects) {
      add(object.key);
      add(object.etag);
      add(object.size_bytes);
    }
  }
  const std::string& packed() const { return packed_; }

 private:
  std::string packed_;
};

/// Takes them out again. Past the end, or once something was wrong, it gives
/// zeros and empty texts.
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto from = take(sizeof(value));
    if (is_good_) std::memcpy(&value, from.data(), sizeof(value));
    return value;
  }
  std::string text() { return std::string(as_text(take(number()))); }
  /// The number of items, of at least `least_bytes` each, that come next.
  std::uint64_t count(std::size_t least_bytes) {
    const std::uint64_t count = number();
    if (count > bytes_.size() / least_bytes) is_good_ = false;
    return is_good_ ? count : 0;
  }
  std::vector<ObjectInfo> objects() {
    std::vector<ObjectInfo> objects(count(3 * sizeof(std::uint64_t)));
    for (ObjectInfo& object : objects) {
      object.key = text();
      object.etag = text();
      object.size_bytes = number();
    }
    return objects;
  }
  /// Everything was taken, and nothing was wrong.
  bool is_done() const { return is_good_ && bytes_.empty(); }

 private:
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size()) is_good_ = false;
    if (!is_good_) return {};
    const auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  bool is_good_ = true;
};

}  // namespace

std::string pack(const SortedObjects& objects) {
  Packer packer;
  packer.add(objects.data);
  packer.add(objects.companions);
  return packer.packed();
}

std::optional<SortedObjects> unpack_listing(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  SortedObjects objects{.layout = Layout::kShards,
                        .data = unpacker.objects(),
                        .companions = unpacker.objects()};
  if (!unpacker.is_done()) return std::nullopt;
  return objects;
}

std::string pack(const ScannedShard& shard) {
  Packer packer;
  packer.add(shard.note);
  packer.add(std::uint64_t{shard.members.size()});
  for (const Member& member : shard.members) {
    packer.add(member.name);
    packer.add(member.offset);
    packer.add(member.size_bytes);
    packer.add(member.field);
  }
  return packer.packed();
}

std::optional<ScannedShard> unpack_shard(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  ScannedShard shard;
  shard.note = unpacker.text();
  shard.members.resize(unpacker.count(4 * sizeof(std::uint64_t)));
  for (Member& member : shard.members) {
    member.name = unpacker.text();
    member.offset = unpacker.number();
    member.size_bytes = unpacker.number();
    member.field = unpacker.text();
  }
  if (!unpacker.is_done()) return std::nullopt;
  return shard;
}

std::string pack(const Error& error) {
  Packer packer;
  packer.add(static_cast<std::uint64_t>(error.code()));
  packer.add(error.message());
  return packer.packed();
}

std::optional<Error> unpack_failure(std::span<const std::byte> bytes) {
  Unpacker unpacker(bytes);
  const std::uint64_t code = unpacker.number();
  std::string message = unpacker.text();
  if (!unpacker.is_done() ||
      code > static_cast<std::uint64_t>(ErrorCode::kInternal)) {
    return std::nullopt;
  }
  return Error(static_cast<ErrorCode>(code), std::move(message));
}

}  // namespace leat
