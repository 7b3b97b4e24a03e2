// Guessing where to cut a range of keys so that the parts can be listed at
// once.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// The keys k with `after` < k <= `upto`; without `upto`, all after `after`.
struct KeyRange {
  std::string after;
  std::optional<std::string> upto;
};

/// Returns at most `count` keys that lie strictly within `range`, in
/// byte order. They cut it into parts of about equal size if the keys in
/// it are like `seen`.
///
/// This is a guess: any part may turn out empty. It assumes that characters
/// that vary in `seen` go on varying (digits through all digits, letters
/// through all letters), and that constant ones stay constant. Guesses are
/// valid UTF-8 without control characters, since S3 takes no others, and begin
/// with `prefix`.
///
/// Pure. REQUIRES: `seen` begin with `prefix`, as does what `range` holds.
std::vector<std::string> guess_split_keys(
    std::string_view prefix, const KeyRange& range,
    std::span<const std::string_view> seen, std::size_t count);

/// At most `count` of the sorted `candidates` that lie strictly within `range`,
/// evenly spread.
std::vector<std::string> pick_split_keys(
    const KeyRange& range, std::span<const std::string> candidates,
    std::size_t count);

}  // namespace leat
