// libjpeg's longjmp, kept in a box.
//
// libjpeg reports errors by a jump that must not cross a destructor. So this is
// C in all but name: plain structs, functions that hold nothing which needs
// destroying, each with a setjmp of its own. jpeg_reader.cc builds on it and
// never sees a jump.
#pragma once
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE, and does not say so.

#include <jpeglib.h>

namespace leat {

struct JpegShim {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];  ///< Why the last call returned false.
  std::uint32_t warnings;
};

/// Each returns false, with a message, instead of jumping. After that, only
/// jpeg_shim_begin, jpeg_shim_finish and jpeg_shim_destroy may follow.
bool jpeg_shim_create(JpegShim* shim);
/// Reads the header of another image; drops what was of the one before.
bool jpeg_shim_begin(JpegShim* shim, const unsigned char* bytes,
                     std::size_t size);
/// Applies the parameters set in shim->jpeg and gets ready to read rows.
bool jpeg_shim_start(JpegShim* shim);
/// Narrows the rows to `*width` columns from `*x`, which grow to whole blocks.
bool jpeg_shim_crop(JpegShim* shim, JDIMENSION* x, JDIMENSION* width);
bool jpeg_shim_skip_rows(JpegShim* shim, JDIMENSION rows);
bool jpeg_shim_read_rows(JpegShim* shim, unsigned char* into,
                         std::size_t stride, JDIMENSION rows);
/// Frees what belongs to the image; the warnings stay.
void jpeg_shim_finish(JpegShim* shim);
void jpeg_shim_destroy(JpegShim* shim);

}  // namespace leat
