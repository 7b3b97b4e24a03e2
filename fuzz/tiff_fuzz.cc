// Any bytes through the TIFF header parser, the decoder and a program that
// crops. Nothing may crash, hang or take more memory than the limit allows.

#include "fuzz/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const leat::fuzz::ImageFuzzer fuzzer;
  if (size == 0) return 0;
  // Most inputs would be no TIFF at all without this.
  const bool is_big_endian = data[0] % 2 == 0;
  fuzzer.run(is_big_endian ? std::string("MM\0*", 4) : std::string("II*\0", 4),
             {data, size});
  return 0;
}
