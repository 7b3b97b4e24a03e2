#include "leat/codec/png/png_shim.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace leat {
namespace {

// No pixel depends on these. Unread, they can neither warn nor inflate.
const png_byte kPassedOver[] =
    "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0"
    "sPLT\0sRGB\0tEXt\0tIME\0zTXt";
constexpr int kPassedOverCount = sizeof(kPassedOver) / 5;
static_assert(sizeof(kPassedOver) % 5 == 0);

constexpr png_alloc_size_t kMostChunkBytes = 1 << 20;

extern "C" {

[[noreturn]] void leat_png_error(png_structp png, png_const_charp message) {
  auto* shim = static_cast<PngShim*>(png_get_error_ptr(png));
  std::snprintf(shim->message, sizeof(shim->message), "%s", message);
  png_longjmp(png, 1);
}

void leat_png_warning(png_structp png, png_const_charp) {
  ++static_cast<PngShim*>(png_get_error_ptr(png))->warnings;
}

void leat_png_read(png_structp png, png_bytep into, std::size_t size) {
  auto* shim = static_cast<PngShim*>(png_get_io_ptr(png));
  if (size > shim->left_bytes) png_error(png, "cut short");
  std::memcpy(into, shim->next, size);
  shim->next += size;
  shim->left_bytes -= size;
}

}  // extern "C"

}  // namespace

bool png_shim_begin(PngShim* shim, const unsigned char* bytes,
                    std::size_t size) {
  png_shim_end(shim);
  *shim = PngShim{};
  shim->next = bytes;
  shim->left_bytes = size;
  std::strcpy(shim->message, "out of memory");
  shim->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, shim,
                                     leat_png_error, leat_png_warning);
  if (shim->png == nullptr) return false;
  shim->info = png_create_info_struct(shim->png);
  if (shim->info == nullptr) return false;
  if (setjmp(png_jmpbuf(shim->png)) != 0) return false;
  png_set_read_fn(shim->png, shim, leat_png_read);
  png_set_chunk_malloc_max(shim->png, kMostChunkBytes);
  png_set_keep_unknown_chunks(shim->png, PNG_HANDLE_CHUNK_NEVER, kPassedOver,
                              kPassedOverCount);
  png_read_info(shim->png, shim->info);
  return true;
}

bool png_shim_start(PngShim* shim, PngRows rows) {
  if (setjmp(png_jmpbuf(shim->png)) != 0) return false;
  const png_byte colour = png_get_color_type(shim->png, shim->info);
  shim->stored_depth = png_get_bit_depth(shim->png, shim->info);
  const bool is_rgb = rows == PngRows::kRgb || rows == PngRows::kRgb16;
  if (rows != PngRows::kGrey16 && rows != PngRows::kRgb16) {
    png_set_strip_16(shim->png);
  } else if constexpr (std::endian::native == std::endian::little) {
    png_set_swap(shim->png);
  }
  if (rows == PngRows::kLabels) {
    png_set_packing(shim->png);
  } else if (colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(shim->png);
  } else if ((colour & PNG_COLOR_MASK_COLOR) == 0) {
    png_set_expand_gray_1_2_4_to_8(shim->png);
    if (is_rgb) png_set_gray_to_rgb(shim->png);
  }
  png_set_strip_alpha(shim->png);
  png_set_interlace_handling(shim->png);
  png_read_update_info(shim->png, shim->info);
  return true;
}

bool png_shim_read_row(PngShim* shim, unsigned char* into) {
  if (setjmp(png_jmpbuf(shim->png)) != 0) return false;
  png_read_row(shim->png, into, nullptr);
  return true;
}

bool png_shim_read_image(PngShim* shim, unsigned char** rows) {
  if (setjmp(png_jmpbuf(shim->png)) != 0) return false;
  png_read_image(shim->png, rows);
  return true;
}

void png_shim_end(PngShim* shim) {
  if (shim->png == nullptr) return;
  png_destroy_read_struct(&shim->png, &shim->info, nullptr);
  shim->png = nullptr;
}

}  // namespace leat
