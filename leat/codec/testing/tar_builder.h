// Builds tar archives in memory, good and bad, for tests.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat::testing {

/// Appends header blocks and bodies to a string. finish() adds the end.
class TarBuilder {
 public:
  /// The fields of a header that a test may want to set.
  struct Header {
    std::string name;
    std::uint64_t size_bytes = 0;
    char type = '0';
    std::string prefix = {};
    std::string size_field = {};  ///< Instead of size_bytes, 12 bytes.
    std::string magic = std::string(
        "ustar\0"
        "00",
        8);
  };

  TarBuilder& add(std::string_view name, std::string_view body) {
    add_header({.name = std::string(name), .size_bytes = body.size()});
    return add_body(body);
  }

  TarBuilder& add_header(const Header& header) {
    std::string block(512, '\0');
    put(block, 0, header.name.substr(0, 100));
    put(block, 100, "0000644");
    put(block, 124,
        header.size_field.empty() ? fmt::format("{:011o}", header.size_bytes)
                                  : header.size_field);
    block[156] = header.type;
    put(block, 257, header.magic);
    put(block, 345, header.prefix);
    put(block, 148, std::string(8, ' '));
    std::uint32_t sum = 0;
    for (const char c : block) sum += static_cast<unsigned char>(c);
    put(block, 148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    archive_ += block;
    return *this;
  }

  TarBuilder& add_body(std::string_view body) {
    archive_ += body;
    archive_.resize((archive_.size() + 511) / 512 * 512);
    return *this;
  }

  /// A pax header ('x', or 'g' for all that follow) with one record.
  TarBuilder& add_pax(std::string_view key, std::string_view value,
                      char type = 'x') {
    return add_extended(type, pax_record(key, value));
  }

  /// A header of this type with a body: pax, or GNU's long names ('L').
  TarBuilder& add_extended(char type, std::string_view body) {
    add_header(
        {.name = "././@LongLink", .size_bytes = body.size(), .type = type});
    return add_body(body);
  }

  static std::string pax_record(std::string_view key, std::string_view value) {
    const std::size_t rest = key.size() + value.size() + 3;
    std::size_t length = rest + 1;
    while (std::to_string(length).size() + rest != length) ++length;
    return fmt::format("{} {}={}\n", length, key, value);
  }

  /// The archive so far, without an end.
  const std::string& unfinished() const { return archive_; }
  std::string finish() const { return archive_ + std::string(1024, '\0'); }

 private:
  static void put(std::string& block, std::size_t at, std::string_view text) {
    block.replace(at, text.size(), text);
  }

  std::string archive_;
};

}  // namespace leat::testing
