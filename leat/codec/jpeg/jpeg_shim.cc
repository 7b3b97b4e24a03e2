#include "leat/codec/jpeg/jpeg_shim.h"

#include <jerror.h>

#include <algorithm>
#include <cstdio>

namespace leat {
namespace {

// A progressive file may ask for pass after pass over all blocks, each for a
// few bytes. Ten are usual. More are allowed as far as all together pass over
// this many pixels, and this many are an attack in any case.
constexpr std::uint64_t kUsualScans = 16;
constexpr std::uint64_t kMostScans = 200;
constexpr std::uint64_t kMostPassedPixels = 400'000'000;

std::uint64_t most_scans(const jpeg_decompress_struct& jpeg) {
  const std::uint64_t pixels =
      std::uint64_t{jpeg.image_width} * jpeg.image_height;
  return std::clamp(kMostPassedPixels / std::max<std::uint64_t>(pixels, 1),
                    kUsualScans, kMostScans);
}

JpegShim* shim_of(j_common_ptr common) {
  return static_cast<JpegShim*>(common->client_data);
}

extern "C" {

[[noreturn]] void leat_jpeg_error(j_common_ptr common) {
  JpegShim* shim = shim_of(common);
  shim->errors.format_message(common, shim->message);
  std::longjmp(shim->escape, 1);
}

void leat_jpeg_message(j_common_ptr common, int level) {
  if (level < 0) ++shim_of(common)->warnings;
}

void leat_jpeg_output(j_common_ptr) {}

void leat_jpeg_progress(j_common_ptr common) {
  const auto* jpeg = reinterpret_cast<j_decompress_ptr>(common);
  const std::uint64_t most = most_scans(*jpeg);
  if (jpeg->input_scan_number <= static_cast<int>(most)) return;
  JpegShim* shim = shim_of(common);
  (void)std::snprintf(shim->message, sizeof shim->message,
                      "more than %d scans of %u x %u pixels",
                      static_cast<int>(most), jpeg->image_width,
                      jpeg->image_height);
  std::longjmp(shim->escape, 1);
}

void leat_jpeg_source_nothing(j_decompress_ptr) {}

boolean leat_jpeg_source_end(j_decompress_ptr jpeg) {
  jpeg->err->msg_code = JERR_INPUT_EOF;
  leat_jpeg_error(reinterpret_cast<j_common_ptr>(jpeg));
}

void leat_jpeg_source_skip(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > jpeg->src->bytes_in_buffer) {
    leat_jpeg_source_end(jpeg);
  }
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

}  // extern "C"

}  // namespace

bool jpeg_shim_create(JpegShim* shim) {
  *shim = JpegShim{};
  shim->jpeg.err = jpeg_std_error(&shim->errors);
  shim->errors.error_exit = leat_jpeg_error;
  shim->errors.emit_message = leat_jpeg_message;
  shim->errors.output_message = leat_jpeg_output;
  shim->jpeg.client_data = shim;
  if (setjmp(shim->escape) != 0) return false;
  jpeg_create_decompress(&shim->jpeg);
  shim->source.init_source = leat_jpeg_source_nothing;
  shim->source.fill_input_buffer = leat_jpeg_source_end;
  shim->source.skip_input_data = leat_jpeg_source_skip;
  shim->source.resync_to_restart = jpeg_resync_to_restart;
  shim->source.term_source = leat_jpeg_source_nothing;
  shim->progress.progress_monitor = leat_jpeg_progress;
  return true;
}

bool jpeg_shim_begin(JpegShim* shim, const unsigned char* bytes,
                     std::size_t size) {
  if (setjmp(shim->escape) != 0) return false;
  jpeg_abort_decompress(&shim->jpeg);
  shim->warnings = 0;
  shim->source.next_input_byte = bytes;
  shim->source.bytes_in_buffer = size;
  shim->jpeg.src = &shim->source;
  shim->jpeg.progress = &shim->progress;
  return jpeg_read_header(&shim->jpeg, TRUE) == JPEG_HEADER_OK;
}

bool jpeg_shim_start(JpegShim* shim) {
  if (setjmp(shim->escape) != 0) return false;
  return jpeg_start_decompress(&shim->jpeg) != FALSE;
}

bool jpeg_shim_crop(JpegShim* shim, JDIMENSION* x, JDIMENSION* width) {
  if (setjmp(shim->escape) != 0) return false;
  jpeg_crop_scanline(&shim->jpeg, x, width);
  return true;
}

bool jpeg_shim_skip_rows(JpegShim* shim, JDIMENSION rows) {
  if (setjmp(shim->escape) != 0) return false;
  return jpeg_skip_scanlines(&shim->jpeg, rows) == rows;
}

bool jpeg_shim_read_rows(JpegShim* shim, unsigned char* into,
                         std::size_t stride, JDIMENSION rows) {
  if (setjmp(shim->escape) != 0) return false;
  constexpr JDIMENSION kMostAtOnce = 16;
  JSAMPROW pointers[kMostAtOnce];
  JDIMENSION done = 0;
  while (done < rows) {
    JDIMENSION asked = 0;
    while (asked < kMostAtOnce && done + asked < rows) {
      pointers[asked] = into + stride * (done + asked);
      ++asked;
    }
    const JDIMENSION got = jpeg_read_scanlines(&shim->jpeg, pointers, asked);
    if (got == 0) return false;
    done += got;
  }
  return true;
}

void jpeg_shim_finish(JpegShim* shim) {
  if (setjmp(shim->escape) != 0) return;
  jpeg_abort_decompress(&shim->jpeg);
}

void jpeg_shim_destroy(JpegShim* shim) { jpeg_destroy_decompress(&shim->jpeg); }

}  // namespace leat
