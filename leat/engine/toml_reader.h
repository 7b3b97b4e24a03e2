// Reads the values of a TOML table, and refuses keys that nobody read.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

// Uses toml++ without exceptions: parsing returns a value.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace leat {

/// A table of a file that a person wrote. The first error is kept with its
/// line; until done() reports it, reads return defaults.
///
/// Lifetime: the table must outlive it.
class TomlReader {
 public:
  /// `where` names the table in messages: "simulation 2".
  TomlReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  /// A whole number from `least` to `most`. Required if there is no default.
  std::uint64_t number(std::string_view key, std::uint64_t least,
                       std::uint64_t most,
                       std::optional<std::uint64_t> otherwise = std::nullopt);
  /// Bytes: a number, or "64MiB" as on the command line.
  std::uint64_t bytes(std::string_view key,
                      std::optional<std::uint64_t> otherwise = std::nullopt);
  /// Bytes as above, or a list of at least one of them.
  std::vector<std::uint64_t> sizes(std::string_view key,
                                   std::uint64_t otherwise);
  /// A duration: "55ms", as on the command line. Returned in seconds.
  double seconds(std::string_view key,
                 std::optional<double> otherwise = std::nullopt);
  /// A price or a speed: any number from 0 up.
  double amount(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  std::string text(std::string_view key,
                   std::optional<std::string_view> otherwise = std::nullopt);
  /// The index of one of `choices`. If absent: the first.
  std::size_t choice(std::string_view key,
                     std::span<const std::string_view> choices);
  /// A nested table, or null.
  const toml::table* table(std::string_view key);
  /// A nested array of tables, or null.
  const toml::array* tables(std::string_view key);

  bool has(std::string_view key) const { return table_.contains(key); }
  const std::string& where() const { return where_; }
  /// Reports an impossible value, for rules that span keys.
  void refuse(std::string_view key, const std::string& why);

  /// Returns the first error; otherwise refuses a key that nobody read.
  Result<void> done();

 private:
  std::uint64_t bytes_of(const toml::node& node, std::string_view key);
  const toml::node* find(std::string_view key, bool is_required);

  const toml::table& table_;
  const std::string where_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> wrong_;
};

/// Parses a file of at most 1 MiB. `name` names the file in messages.
Result<toml::table> parse_toml(std::string_view text, const std::string& name);

}  // namespace leat
