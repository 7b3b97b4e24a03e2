#include "leat/bucket/chunked_body.h"

#include <algorithm>

#include "leat/base/buffer.h"
#include "leat/base/text.h"

namespace leat {
namespace {

/// A size and `;chunk-signature=` with 64 digits take 100 bytes.
constexpr std::size_t kMostLineBytes = 1024;

}  // namespace

bool ChunkedBody::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    bool is_good = true;
    switch (state_) {
      case State::kSize:
        is_good = take_size_byte(char(bytes[0]));
        bytes = bytes.subspan(1);
        break;
      case State::kDataEnd:
        is_good = take_data_end_byte(char(bytes[0]));
        bytes = bytes.subspan(1);
        break;
      case State::kData: {
        const auto now =
            std::size_t(std::min<std::uint64_t>(left_, bytes.size()));
        sink_(bytes.first(now));
        left_ -= now;
        size_bytes_ += now;
        bytes = bytes.subspan(now);
        if (left_ == 0) state_ = State::kDataEnd;
        break;
      }
      case State::kTrailer:
        return true;
      case State::kBroken:
        return false;
    }
    if (!is_good) state_ = State::kBroken;
  }
  return state_ != State::kBroken;
}

bool ChunkedBody::take_size_byte(char c) {
  if (c != '\n') {
    line_ += c;
    return line_.size() <= kMostLineBytes;
  }
  return line_.ends_with('\r') && begin_chunk();
}

bool ChunkedBody::begin_chunk() {
  const std::string_view line(line_.data(), line_.size() - 1);
  const std::string_view digits = line.substr(0, line.find(';'));
  const auto bytes = number_from<std::uint64_t>(digits, 16);
  if (!bytes) return false;
  left_ = *bytes;
  line_.clear();
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return true;
}

bool ChunkedBody::take_data_end_byte(char c) {
  line_ += c;
  if (line_ == "\r") return true;
  if (line_ != "\r\n") return false;
  line_.clear();
  state_ = State::kSize;
  return true;
}

}  // namespace leat
