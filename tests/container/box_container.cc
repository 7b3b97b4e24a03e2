// A container that no user wants, added as leat/index/README.md says. A box is
// one member after another: 24 bytes of its name, filled up with zeros, 8 of
// its size, little-endian, and its body.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "leat/base/buffer.h"
#include "tests/container/containers.h"

namespace leat {
namespace {

constexpr std::uint64_t kNameBytes = 24;
constexpr std::uint64_t kHeadBytes = kNameBytes + sizeof(std::uint64_t);

class BoxScanner final : public MemberScanner {
 public:
  explicit BoxScanner(std::uint64_t size_bytes) : size_bytes_(size_bytes) {}

  std::optional<Want> wants() const override {
    if (next_ == size_bytes_) return std::nullopt;
    return Want{.offset = next_,
                .length = std::min(kHeadBytes, size_bytes_ - next_)};
  }

  Result<void> feed(std::span<const std::byte> bytes,
                    std::vector<Member>& members) override {
    Member member{.name = "", .offset = next_ + kHeadBytes};
    if (bytes.size() == kHeadBytes) {
      const std::string_view name = as_text(bytes.first(kNameBytes));
      member.name = name.substr(0, name.find('\0'));
      std::memcpy(&member.size_bytes, bytes.data() + kNameBytes,
                  sizeof(member.size_bytes));
    }
    if (bytes.size() != kHeadBytes ||
        member.size_bytes > size_bytes_ - member.offset) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("at byte {}: the box is cut short", next_));
    }
    next_ = member.offset + member.size_bytes;
    members.push_back(std::move(member));
    return {};
  }

 private:
  const std::uint64_t size_bytes_;
  std::uint64_t next_ = 0;
};

std::unique_ptr<MemberScanner> scan(std::uint64_t size_bytes) {
  return std::make_unique<BoxScanner>(size_bytes);
}

constexpr std::array<std::string_view, 1> kCompressed = {".box.gz"};

}  // namespace

constinit const Container kBoxContainer = {
    .ending = ".box", .scan = scan, .compressed = kCompressed};

}  // namespace leat
