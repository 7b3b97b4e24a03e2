// libpng's longjmp, kept in a box, as jpeg_shim.h does it for libjpeg.
#pragma once
#include <cstddef>
#include <cstdint>

#include <png.h>

namespace leat {

struct PngShim {
  png_structp png;
  png_infop info;
  const unsigned char* next;
  std::size_t left_bytes;
  char message[160];  ///< Why the last call returned false.
  std::uint32_t warnings;
  unsigned stored_depth;  ///< Bits of a sample; set by png_shim_start().
};

/// How the rows shall come: bytes of 1 or 3 channels, or 16 bits each.
enum class PngRows : std::uint8_t {
  kRgb,
  kAsStored,  ///< 1 channel for grey, 3 for colour and palettes.
  kGrey16,    ///< 1 channel of 16 bits, in the machine's order.
  kRgb16,     ///< 3 channels of 16 bits.
  kLabels,    ///< 1 channel for grey and palettes, no number scaled.
};

/// Each returns false, with a message, instead of jumping. After that, only
/// png_shim_begin and png_shim_end may follow.
///
/// Reads the header of another image; ends the one before. `shim` must be
/// zeroed before its first use.
bool png_shim_begin(PngShim* shim, const unsigned char* bytes,
                    std::size_t size);
bool png_shim_start(PngShim* shim, PngRows rows);
bool png_shim_read_row(PngShim* shim, unsigned char* into);
/// All rows of an image, interlaced or not; `rows` holds a pointer for each.
bool png_shim_read_image(PngShim* shim, unsigned char** rows);
void png_shim_end(PngShim* shim);

}  // namespace leat
