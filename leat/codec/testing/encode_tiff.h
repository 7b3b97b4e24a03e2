// Small TIFFs for tests, written without libtiff.
#pragma once
#include <cstdint>
#include <string>

#include "leat/codec/testing/encode_image.h"

namespace leat::testing {

struct TiffOptions {
  /// 16: each byte becomes the upper one, and x the lower.
  std::uint32_t depth = 8;
  bool is_big_endian = false;
  bool is_packed = false;       ///< By PackBits.
  std::uint32_t tile_side = 0;  ///< 0: strips of 7 rows. Else 16, 32 …
  bool is_white_0 = false;
  std::uint32_t orientation = 1;
  std::uint32_t sample_format = 1;
  std::uint32_t claimed_compression = 0;  ///< If not 0.
  std::uint32_t claimed_tile_side = 0;    ///< If not 0.
  bool has_second = false;  ///< A second picture: the first once more.
};

/// 1 channel is grey, 3 are colour, 4 colour and alpha. The pixels come last.
std::string encode_tiff(const Pixels& pixels, const TiffOptions& options = {});

}  // namespace leat::testing
