// Bodies in the framing that AWS clients call aws-chunked: each chunk signed or
// not, and a checksum behind the last.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace leat {

/// Takes the framing off.
///
///   <hex size>[;chunk-signature=…]\r\n <bytes> \r\n … 0[;…]\r\n
///   [x-amz-checksum-…: …\r\n …] \r\n
///
/// Signatures of chunks and checksums in trailers are read over, not checked.
/// Some clients end without the last empty line; so what follows the chunk of
/// size 0 is never missed.
class ChunkedBody {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  explicit ChunkedBody(Sink sink) : sink_(std::move(sink)) {}

  /// Takes the next bytes as they came. False if they break the framing; then
  /// and ever after.
  bool put(std::span<const std::byte> bytes);

  /// True once the last chunk has been seen.
  bool is_whole() const { return state_ == State::kTrailer; }
  /// Bytes without the framing, so far.
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  enum class State : std::uint8_t { kSize, kData, kDataEnd, kTrailer, kBroken };

  bool take_size_byte(char c);
  bool take_data_end_byte(char c);
  bool begin_chunk();

  const Sink sink_;
  State state_ = State::kSize;
  std::string line_;  // The chunk's head, so far.
  std::uint64_t left_ = 0;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace leat
