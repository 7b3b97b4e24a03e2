// Finds the members of a tar archive without reading their bodies.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"
#include "leat/codec/tar/tar_header.h"

namespace leat {

/// Reads ustar, pax and GNU archives: whole pieces where members are small,
/// headers alone where they are large. Links, folders and devices are passed
/// over. An archive must end as POSIX says, with a block of zeros: else it was
/// cut, and the rest would be missing without anybody noticing.
class TarScanner final : public MemberScanner {
 public:
  /// The size of a read while members are small.
  static constexpr std::uint64_t kPieceBytes = 1 << 20;
  /// The size of a read while members are large: a header, or three with pax.
  static constexpr std::uint64_t kHeadBytes = 4 << 10;
  /// Members larger than this, on average of the last few, are large.
  static constexpr std::uint64_t kLargeMember = 512 << 10;
  /// Most bytes of a name or of a pax header.
  static constexpr std::uint64_t kMostExtended = 1 << 20;

  explicit TarScanner(std::uint64_t archive_bytes)
      : archive_bytes_(archive_bytes) {}

  std::optional<Want> wants() const override;
  /// Errors:
  ///   kCorrupt          cut short, no header where one should be, a name that
  ///                     is absolute or points outside; names the offset
  ///   kInvalidArgument  compressed, or with sparse or multi-volume members
  Result<void> feed(std::span<const std::byte> bytes,
                    std::vector<Member>& members) override;

 private:
  /// The settings that apply to the next member.
  struct Pending {
    PaxRecords pax;
    std::optional<std::string> long_name;
  };

  Result<void> take_header(std::span<const std::byte> rest,
                           std::vector<Member>& members);
  Result<void> take_extended(const TarHeader& header,
                             std::span<const std::byte> rest);
  Result<void> take_member(const TarHeader& header,
                           std::vector<Member>& members);
  Result<void> take_zero_block(std::span<const std::byte> rest);
  Result<void> skip(std::uint64_t size_bytes);
  Error at_next(Error error) const;

  const std::uint64_t archive_bytes_;
  std::uint64_t next_ = 0;                ///< The place of the next header.
  std::uint64_t least_ = kTarBlockBytes;  ///< Bytes needed there to go on.
  std::uint64_t mean_ = 0;  ///< Bytes from header to header, of late.
  bool is_done_ = false;
  PaxRecords globals_;
  Pending pending_;
};

}  // namespace leat
