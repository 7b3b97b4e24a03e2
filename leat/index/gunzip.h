// Unpacking gzip in pieces.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "leat/base/result.h"

namespace leat {

/// Unpacks a gzip file that arrives in pieces. Passes its text on in pieces of
/// at most 64 KiB, so a bomb costs time but no memory.
///
/// Threads: one at a time.
class Gunzip {
 public:
  using Take = std::function<Result<void>(std::string_view)>;

  explicit Gunzip(Take take);
  ~Gunzip();

  /// Errors: kCorrupt if it is not gzip, or its checksum is wrong; those of
  /// `take`
  Result<void> feed(std::span<const std::byte> bytes);

  /// Errors: kCorrupt if it was cut short.
  Result<void> finish() const;

 private:
  struct State;
  const Take take_;
  std::unique_ptr<State> state_;
};

}  // namespace leat
