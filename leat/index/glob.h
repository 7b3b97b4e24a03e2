// Names with wildcards, as people write them for files.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

namespace leat {

/// True for a name with `*`, `?` or `[`.
bool has_wildcards(std::string_view text);

/// A pattern of keys.
///
///   * any run of characters within one part (parts are separated by '/')
///   ? one character of a part
///   [a-z] one of these; [!a-z] any other; [*] is a literal star
///   ** as a part of its own: any number of parts, or none
///
/// Case matters. Takes no more steps than the product of both lengths, for any
/// pattern.
///
/// Threads: any; it never changes.
class Glob {
 public:
  /// Errors: kInvalidArgument for an empty pattern, or one of over 4,096 bytes
  static Result<Glob> parse(std::string_view pattern);

  /// Whether the pattern matches all of `key`.
  bool matches(std::string_view key) const;

  /// The same for the last part of `key`, if the pattern has a single part:
  /// "*.csv" matches any such name, in any folder.
  bool matches_anywhere(std::string_view key) const;

  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<std::string> parts_;
};

}  // namespace leat
