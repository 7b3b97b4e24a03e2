// Reads the values of a TOML table and refuses what it was not asked about.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"

// toml++ without exceptions: a parse is a value.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace leat {

/// One table of a file that a person wrote. The first error is kept, with its
/// line; until done() reports it, reads return defaults.
///
/// Lifetime: the table outlives it.
class TomlReader {
 public:
  /// `where` names the table in messages: "simulation 2".
  TomlReader(const toml::table& table, std::string where)
      : table_(table), where_(std::move(where)) {}

  /// A whole number from `least` to `most`. Without a default it must be there.
  std::uint64_t number(std::string_view key, std::uint64_t least,
                       std::uint64_t most,
                       std::optional<std::uint64_t> otherwise = std::nullopt);
  /// Bytes: a number, or "64MiB" as on the command line.
  std::uint64_t bytes(std::string_view key,
                      std::optional<std::uint64_t> otherwise = std::nullopt);
  /// Bytes as above, or a list of at least one of them.
  std::vector<std::uint64_t> sizes(std::string_view key,
                                   std::uint64_t otherwise);
  /// A duration: "55ms", as on the command line. In seconds.
  double seconds(std::string_view key,
                 std::optional<double> otherwise = std::nullopt);
  /// A price or a speed: any number from 0 up.
  double amount(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  std::string text(std::string_view key,
                   std::optional<std::string_view> otherwise = std::nullopt);
  /// One of `choices`: its index. Absent: the first.
  std::size_t choice(std::string_view key,
                     std::span<const std::string_view> choices);
  /// A table within, or null.
  const toml::table* table(std::string_view key);
  /// An array of tables within, or null.
  const toml::array* tables(std::string_view key);

  bool has(std::string_view key) const { return table_.contains(key); }
  const std::string& where() const { return where_; }
  /// Reports values that cannot be: for rules between keys.
  void refuse(std::string_view key, const std::string& why);

  /// The error, if any; else a key that nobody asked for; else nothing.
  Result<void> done();

 private:
  std::uint64_t bytes_of(const toml::node& node, std::string_view key);
  const toml::node* find(std::string_view key, bool is_required);

  const toml::table& table_;
  const std::string where_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> wrong_;
};

/// Parses a file of at most 1 MiB. `name` stands in messages.
Result<toml::table> parse_toml(std::string_view text, const std::string& name);

}  // namespace leat
