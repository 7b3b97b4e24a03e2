// Writes the text of a trace, which has eight numbers for every sample.
#pragma once
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "leat/base/clock.h"

namespace leat {

/// Text that grows in small pieces. Room is made once for many pieces, and
/// adding one is then a copy: fmt takes about ten times as long.
///
/// Threads: one at a time.
class TraceText {
 public:
  /// The length of the longest number or time in digits.
  static constexpr std::size_t kMostDigits = 24;

  std::string_view view() const { return {text_.get(), size_}; }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

  /// Makes room for this many more bytes.
  void make_room(std::size_t bytes) {
    if (size_ + bytes <= capacity_) return;
    const std::size_t capacity = std::max(2 * capacity_, size_ + bytes);
    std::unique_ptr<char[]> larger(new char[capacity]);
    if (size_ > 0) std::memcpy(larger.get(), text_.get(), size_);
    text_ = std::move(larger);
    capacity_ = capacity;
  }

  /// REQUIRES: there is room for it.
  void put(std::string_view piece) {
    piece.copy(text_.get() + size_, piece.size());
    size_ += piece.size();
  }
  /// The same; at most kMostDigits.
  void put(std::unsigned_integral auto number) {
    char* const at = text_.get() + size_;
    size_ += static_cast<std::size_t>(
        std::to_chars(at, at + kMostDigits, number).ptr - at);
  }
  /// In microseconds, with three decimals; at most kMostDigits.
  void put(Nanoseconds time) {
    auto rest = static_cast<std::uint64_t>(time.count());
    if (time.count() < 0) {
      text_[size_++] = '-';
      rest = 0 - rest;
    }
    put(rest / 1000);
    const std::uint64_t decimals = rest % 1000;
    text_[size_++] = '.';
    text_[size_++] = static_cast<char>('0' + decimals / 100);
    text_[size_++] = static_cast<char>('0' + decimals / 10 % 10);
    text_[size_++] = static_cast<char>('0' + decimals % 10);
  }

 private:
  std::unique_ptr<char[]> text_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace leat
