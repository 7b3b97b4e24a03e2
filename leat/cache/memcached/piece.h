// How a value is stored in memcached: split into self-checking pieces.
//
// A piece, integers little-endian:
//
//   0  u32  magic: "LPV2"
//   4  u32  number of this piece, from 0
//   8  u32  pieces in all
//  12  u64  bytes of the whole value
//  20       16 bytes: SipHash-2-4, keyed with the job's secret, of the record
//           key (high, low), of bytes 0 to 19, and of the payload
//  36       payload
//
// The record key names one version of one range of one object, so a piece that
// passes holds the bytes asked for: not torn, not stale, not another record's.
// Nobody without the secret can make a piece that passes. A job without a
// secret has a key of zeros: then this protects against accidents alone.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "leat/base/hash.h"
#include "leat/base/result.h"

namespace leat {

inline constexpr std::size_t kPieceHeaderBytes = 36;
/// Larger values are split. Stored items are at most this long, so that a
/// server's slabs serve few sizes.
inline constexpr std::size_t kMostPieceBytes = 128'000;
/// Larger values are not kept by peers.
inline constexpr std::uint64_t kMostPeerValueBytes = std::uint64_t{1} << 30;

/// How a value is split: all pieces but the last have `piece_bytes`, and the
/// last is at most `pieces - 1` bytes shorter.
struct ValueSplit {
  std::uint64_t value_bytes = 0;
  std::uint32_t pieces = 0;
  std::size_t piece_bytes = 0;

  std::uint64_t offset_of(std::uint32_t piece) const {
    return std::uint64_t{piece} * piece_bytes;
  }
  std::size_t bytes_of(std::uint32_t piece) const;
};

/// REQUIRES: 0 < value_bytes <= kMostPeerValueBytes.
ValueSplit split_value(std::uint64_t value_bytes);

using PieceHeader = std::array<std::byte, kPieceHeaderBytes>;

/// The key of the seals of one job.
using PeerKey = std::array<std::byte, 16>;
/// The key that a secret stands for; zeros for none.
PeerKey peer_key_of(std::string_view secret);

/// Seals pieces with a key, and checks seals.
///
/// Threads: one at a time.
class PieceSeal {
 public:
  explicit PieceSeal(const PeerKey& key);
  ~PieceSeal();
  PieceSeal(PieceSeal&&) noexcept;

  /// Errors: kUnavailable if this machine's OpenSSL has no SipHash
  static Result<void> check_openssl();

  /// REQUIRES: piece < split.pieces; `payload` has split.bytes_of(piece) bytes.
  PieceHeader make_header(const Hash128& key, const ValueSplit& split,
                          std::uint32_t piece,
                          std::span<const std::byte> payload);

  /// True if `header` and `payload` are this piece of this value.
  bool is_piece(const PieceHeader& header, const Hash128& key,
                const ValueSplit& split, std::uint32_t piece,
                std::span<const std::byte> payload);

 private:
  struct Mac;
  std::unique_ptr<Mac> mac_;
};

/// The name of the piece in memcached: printable, at most 48 bytes.
std::string piece_name(const Hash128& key, std::uint32_t piece);

}  // namespace leat
