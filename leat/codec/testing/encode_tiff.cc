#include "leat/codec/testing/encode_tiff.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

constexpr std::uint32_t kRowsOfAStrip = 7;
constexpr std::uint32_t kDirectoryAt = 8;

struct Entry {
  std::uint32_t tag = 0;
  std::uint32_t number_bytes = 0;  // 2 or 4.
  std::vector<std::uint32_t> values;

  std::size_t size() const { return values.size() * number_bytes; }
  bool is_apart() const { return size() > 4; }
};

class Writer {
 public:
  explicit Writer(bool is_big_endian) : is_big_endian_(is_big_endian) {}

  void add(std::uint32_t value, std::uint32_t bytes) {
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const std::uint32_t shift = 8 * (is_big_endian_ ? bytes - 1 - i : i);
      text += static_cast<char>(value >> shift & 0xff);
    }
  }

  void add_values(const Entry& entry) {
    for (const std::uint32_t value : entry.values) {
      add(value, entry.number_bytes);
    }
  }

  /// Its values too, or that they lie at `apart`.
  void add_entry(const Entry& entry, std::uint32_t apart) {
    add(entry.tag, 2);
    add(entry.number_bytes == 2 ? 3 : 4, 2);
    add(static_cast<std::uint32_t>(entry.values.size()), 4);
    if (entry.is_apart()) return add(apart, 4);
    add_values(entry);
    text.resize(text.size() + 4 - entry.size());
  }

  std::string text;

 private:
  const bool is_big_endian_;
};

std::string packed(const std::string& bytes) {
  constexpr std::size_t kMost = 128;
  std::string result;
  for (std::size_t at = 0; at < bytes.size(); at += kMost) {
    const std::string run = bytes.substr(at, kMost);
    result += static_cast<char>(run.size() - 1) + run;
  }
  return result;
}

/// Strips or tiles of one picture.
struct Blocks {
  const Pixels& pixels;
  const TiffOptions& options;
  const bool has_tiles = options.tile_side != 0;
  const std::uint32_t width = has_tiles ? options.tile_side : pixels.width;
  const std::uint32_t height = has_tiles ? options.tile_side : kRowsOfAStrip;

  std::string row(std::uint32_t y) const {
    Writer line(options.is_big_endian);
    for (std::uint32_t x = 0; x < pixels.width; ++x) {
      for (std::uint32_t c = 0; c < pixels.channels; ++c) {
        const std::uint32_t value = pixels.at(x, y, c);
        line.add(options.depth == 16 ? value << 8 | x : value,
                 options.depth / 8);
      }
    }
    return std::move(line.text);
  }

  std::string block(std::uint32_t left, std::uint32_t top) const {
    const std::size_t pixel_bytes =
        std::size_t{pixels.channels} * options.depth / 8;
    std::string result;
    for (std::uint32_t y = top; y < top + height; ++y) {
      if (y >= pixels.height && !has_tiles) break;
      std::string line;
      if (y < pixels.height) {
        line = row(y).substr(left * pixel_bytes, width * pixel_bytes);
      }
      line.resize(width * pixel_bytes);
      result += options.is_packed ? packed(line) : line;
    }
    return result;
  }

  std::vector<std::string> all() const {
    std::vector<std::string> result;
    for (std::uint32_t y = 0; y < pixels.height; y += height) {
      for (std::uint32_t x = 0; x < pixels.width; x += width) {
        result.push_back(block(x, y));
      }
    }
    return result;
  }
};

/// In the order of their tags; with places from `at` on.
std::vector<Entry> entries_of(const Blocks& blocks,
                              const std::vector<std::string>& stored,
                              std::uint32_t at) {
  using Values = std::vector<std::uint32_t>;
  const auto& [pixels, options, has_tiles, width, height] = blocks;
  Values places;
  Values sizes;
  for (const std::string& block : stored) {
    places.push_back(at);
    sizes.push_back(static_cast<std::uint32_t>(block.size()));
    at += sizes.back();
  }
  const std::uint32_t claimed = options.is_packed ? 32773 : 1;
  const std::uint32_t grey = options.is_white_0 ? 0 : 1;
  std::vector<Entry> entries = {
      {256, 4, {pixels.width}},
      {257, 4, {pixels.height}},
      {258, 2, Values(pixels.channels, options.depth)},
      {259,
       2,
       {options.claimed_compression == 0 ? claimed
                                         : options.claimed_compression}},
      {262, 2, {pixels.channels > 1 ? 2u : grey}},
      {274, 2, {options.orientation}},
      {277, 2, {pixels.channels}},
      {339, 2, Values(pixels.channels, options.sample_format)}};
  if (has_tiles) {
    const std::uint32_t side = std::max(width, options.claimed_tile_side);
    entries.push_back({322, 4, {side}});
    entries.push_back({323, 4, {side}});
  } else {
    entries.push_back({278, 4, {height}});
  }
  entries.push_back({has_tiles ? 324u : 273u, 4, places});
  entries.push_back({has_tiles ? 325u : 279u, 4, sizes});
  if (pixels.channels == 4) entries.push_back({338, 2, {2}});  // Alpha.
  std::ranges::sort(entries, {}, &Entry::tag);
  return entries;
}

std::uint32_t directory_bytes(const std::vector<Entry>& entries) {
  return static_cast<std::uint32_t>(2 + 12 * entries.size() + 4);
}

}  // namespace

std::string encode_tiff(const Pixels& pixels, const TiffOptions& options) {
  const Blocks blocks{pixels, options};
  const std::vector<std::string> stored = blocks.all();
  std::vector<Entry> entries = entries_of(blocks, stored, 0);
  std::uint32_t apart = kDirectoryAt + directory_bytes(entries);
  std::size_t apart_bytes = 0;
  for (const Entry& entry : entries) {
    if (entry.is_apart()) apart_bytes += entry.size();
  }
  entries = entries_of(blocks, stored,
                       apart + static_cast<std::uint32_t>(apart_bytes));

  Writer file(options.is_big_endian);
  file.text += options.is_big_endian ? "MM" : "II";
  file.add(42, 2);
  file.add(kDirectoryAt, 4);
  file.add(static_cast<std::uint32_t>(entries.size()), 2);
  for (const Entry& entry : entries) {
    file.add_entry(entry, apart);
    if (entry.is_apart()) apart += static_cast<std::uint32_t>(entry.size());
  }
  file.add(options.has_second ? kDirectoryAt : 0, 4);
  for (const Entry& entry : entries) {
    if (entry.is_apart()) file.add_values(entry);
  }
  for (const std::string& block : stored) file.text += block;
  return std::move(file.text);
}

}  // namespace leat::testing
