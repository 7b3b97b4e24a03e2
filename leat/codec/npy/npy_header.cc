#include "leat/codec/npy/npy_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "leat/base/buffer.h"
#include "leat/base/errors.h"
#include "leat/codec/text/text.h"

namespace leat {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostHeaderBytes = 10'000;  // As NumPy's own limit.
constexpr std::size_t kMostNpyDimensions = 32;

Error damaged(std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("npy: {}", what));
}

Error not_taken(std::string what) { return invalid("npy: " + std::move(what)); }

struct Entries {
  std::optional<std::string_view> descr;
  std::optional<bool> is_fortran;
  std::optional<std::vector<std::int64_t>> shape;
};

/// Reads the dict from left to right. Each function takes what it is named
/// after, or answers nothing.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : rest_(text) {}

  Result<Entries> read() {
    Entries entries;
    if (!take('{')) return malformed();
    while (!take('}')) {
      const std::optional<std::string_view> key = take_text();
      if (!key || !take(':')) return malformed();
      LEAT_TRY_VOID(read_value(*key, entries));
      if (take(',')) continue;
      if (!take('}')) return malformed();
      break;
    }
    skip_blanks();
    if (!rest_.empty()) return malformed();
    if (!entries.descr || !entries.is_fortran || !entries.shape) {
      return damaged("the header lacks descr, fortran_order or shape");
    }
    return entries;
  }

 private:
  Result<void> read_value(std::string_view key, Entries& entries) {
    if (key == "descr" && !entries.descr) {
      skip_blanks();
      if (rest_.starts_with('[') || rest_.starts_with('(')) {
        return not_taken(
            "its items are structures; save each of their fields as an array "
            "of its own");
      }
      entries.descr = take_text();
      if (entries.descr) return {};
    } else if (key == "fortran_order" && !entries.is_fortran) {
      entries.is_fortran = take_bool();
      if (entries.is_fortran) return {};
    } else if (key == "shape" && !entries.shape) {
      entries.shape = take_shape();
      if (entries.shape) return {};
    }
    return malformed();
  }

  void skip_blanks() {
    const std::size_t blanks = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(blanks, rest_.size()));
  }

  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::optional<bool> take_bool() {
    if (take_word("False")) return false;
    if (take_word("True")) return true;
    return std::nullopt;
  }

  /// In either kind of quotes. No text that we know has a backslash.
  std::optional<std::string_view> take_text() {
    skip_blanks();
    if (!rest_.starts_with('\'') && !rest_.starts_with('"')) {
      return std::nullopt;
    }
    const std::size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    if (text.find('\\') != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(end + 1);
    return text;
  }

  /// At least one digit; nothing past int64. Python 2 put an L behind some.
  std::optional<std::int64_t> take_count() {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    skip_blanks();
    std::int64_t value = 0;
    std::size_t digits = 0;
    for (;
         digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9';
         ++digits) {
      const std::int64_t digit = rest_[digits] - '0';
      if (value > (kMost - digit) / 10) return std::nullopt;
      value = value * 10 + digit;
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    if (rest_.starts_with('L')) rest_.remove_prefix(1);
    return value;
  }

  std::optional<std::vector<std::int64_t>> take_shape() {
    std::vector<std::int64_t> shape;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      const std::optional<std::int64_t> count = take_count();
      if (!count || shape.size() == kMostNpyDimensions) return std::nullopt;
      shape.push_back(*count);
      if (take(',')) continue;
      if (shape.size() == 1 || !take(')')) return std::nullopt;  // (3) is 3.
      break;
    }
    return shape;
  }

  Error malformed() const {
    return damaged(
        fmt::format("the header is malformed at {}", quoted(as_bytes(rest_))));
  }

  std::string_view rest_;
};

bool is_taken(char kind, std::int64_t item_bytes) {
  const auto one_of = [&](std::initializer_list<int> sizes) {
    for (const int size : sizes) {
      if (size == item_bytes) return true;
    }
    return false;
  };
  switch (kind) {
    case 'b':
      return one_of({1});
    case 'i':
    case 'u':
      return one_of({1, 2, 4, 8});
    case 'f':
      return one_of({2, 4, 8});
    case 'c':
      return one_of({8, 16});
    default:
      return false;
  }
}

/// "<f4": byte order, kind, bytes of an item.
Result<void> read_descr(std::string_view descr, NpyHeader& header) {
  const bool has_order =
      !descr.empty() &&
      std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const std::string_view type = descr.substr(has_order ? 1 : 0);
  const auto size =
      parse_whole_number(as_bytes(type.substr(type.empty() ? 0 : 1)));
  if (type.starts_with('O')) {
    return not_taken(
        "its items are Python objects, which only pickle can read and nobody "
        "should; save numbers");
  }
  if (!size || !is_taken(type[0], *size)) {
    return not_taken(
        fmt::format("dtype {} is none of bool, int8 to int64, uint8 to uint64, "
                    "float16 to float64, complex64 and complex128",
                    quoted(as_bytes(descr))));
  }
  if (descr[0] == '>' && *size > 1) {
    return not_taken(
        fmt::format("dtype {} is big-endian; save array.astype(\"<{}\")",
                    quoted(as_bytes(descr)), type));
  }
  header.kind = static_cast<NpyKind>(type[0]);
  header.item_bytes = static_cast<std::uint32_t>(*size);
  return {};
}

/// The other sides of an array without items are those of an array that there
/// may be, so that NumPy takes them, and those of a batch of such.
Result<void> check_empty(const NpyHeader& header) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
  std::uint64_t bytes = header.item_bytes;
  for (const std::int64_t count : header.shape) {
    const auto factor =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(count), 1);
    if (bytes > kMostBytes / factor) {
      return damaged(
          fmt::format("it has no items, and a side of {}, which no array has",
                      std::ranges::max(header.shape)));
    }
    bytes *= factor;
  }
  return {};
}

/// Only the items follow. The test is written so that no
/// product can wrap around.
Result<void> check_size(const NpyHeader& header, std::uint64_t file_bytes) {
  const std::uint64_t present = file_bytes - header.data_offset;
  std::uint64_t bytes = header.item_bytes;
  bool is_empty = false;
  for (const std::int64_t count : header.shape) is_empty |= count == 0;
  for (const std::int64_t count : header.shape) {
    if (is_empty) break;
    const auto factor = static_cast<std::uint64_t>(count);
    if (bytes > present / factor) {
      return damaged(fmt::format(
          "cut short: only {} bytes of items follow the header", present));
    }
    bytes *= factor;
  }
  if (is_empty) {
    LEAT_TRY_VOID(check_empty(header));
    bytes = 0;
  }
  if (bytes > present) return damaged("cut short: an item is not whole");
  if (bytes < present) {
    return damaged(fmt::format("{} bytes follow the array; a file holds one",
                               present - bytes));
  }
  return {};
}

/// The dict, and where it ends.
Result<std::string_view> find_dict(std::string_view file) {
  if (!file.starts_with(kMagic)) {
    return damaged(fmt::format("no .npy: it begins with {}",
                               quoted(as_bytes(file.substr(0, 8)))));
  }
  if (file.size() < 12) return damaged("cut short: the header is not whole");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[i]));
  };
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0) {
    return damaged(fmt::format("version {}.{}; 1.0, 2.0 and 3.0 are known",
                               byte(6), byte(7)));
  }
  std::size_t begin = 10;
  std::size_t length = byte(8) | byte(9) << 8;
  if (byte(6) > 1) {
    begin = 12;
    length |= byte(10) << 16 | byte(11) << 24;
  }
  if (length > kMostHeaderBytes) {
    return damaged(fmt::format("the header claims {} bytes, more than {}",
                               length, kMostHeaderBytes));
  }
  if (length > file.size() - begin) {
    return damaged("cut short: the header is not whole");
  }
  return file.substr(begin, length);
}

}  // namespace

Result<NpyHeader> read_npy_header(std::span<const std::byte> head,
                                  std::uint64_t file_bytes) {
  const std::string_view text = as_text(head);
  LEAT_TRY(const std::string_view dict, find_dict(text));
  LEAT_TRY(Entries entries, DictReader(dict).read());
  NpyHeader header;
  header.data_offset =
      static_cast<std::size_t>(dict.data() - text.data()) + dict.size();
  LEAT_TRY_VOID(read_descr(*entries.descr, header));
  header.shape = *std::move(entries.shape);
  if (*entries.is_fortran && header.shape.size() > 1) {
    return not_taken(
        "the array is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  LEAT_TRY_VOID(check_size(header, file_bytes));
  return header;
}

Result<void> check_items_follow(const NpyHeader& header,
                                std::uint64_t file_bytes,
                                std::string_view what) {
  const std::uint64_t present = file_bytes - header.data_offset;
  // Written so that no product can wrap around.
  std::uint64_t bytes = std::ranges::find(header.shape, 0) != header.shape.end()
                            ? 0
                            : header.item_bytes;
  for (const std::int64_t side : header.shape) {
    if (bytes == 0) break;
    const auto factor = static_cast<std::uint64_t>(side);
    if (bytes > present / factor) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: only {} bytes of items follow the head, "
                               "which claims more",
                               what, present));
    }
    bytes *= factor;
  }
  if (bytes == present) return {};
  return Error(ErrorCode::kCorrupt,
               fmt::format("{}: {} bytes of items follow the head, which "
                           "claims {}",
                           what, present, bytes));
}

}  // namespace leat
