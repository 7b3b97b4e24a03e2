// The time that a server takes to begin its replies.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/clock.h"

namespace leat {

/// Estimates, as replies come, the time within which 99 of 100 begin.
///
/// Counts them by powers of the square root of two, so that the estimate is at
/// most 42 % too long. Halves all counts now and then, so that it follows the
/// server.
class FirstByteTimes {
 public:
  /// Fewer replies say nothing about the slowest of a hundred.
  static constexpr std::uint32_t kEnough = 100;

  void note(Nanoseconds time);
  /// Nullopt while fewer than kEnough replies are known.
  std::optional<Nanoseconds> p99() const;

 private:
  static constexpr std::size_t kBuckets = 48;

  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint32_t total_ = 0;
};

/// The estimates of all servers that were asked. Threads: one.
class FirstByteBook {
 public:
  /// Valid as long as the book.
  FirstByteTimes& of(std::string_view host, std::uint16_t port);

 private:
  struct Server {
    std::string host;
    std::uint16_t port = 0;
    FirstByteTimes times;
  };
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace leat
