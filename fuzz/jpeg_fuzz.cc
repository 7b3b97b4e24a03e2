// Any bytes through the JPEG header parser, the decoder and a program that
// crops and shrinks. Nothing may crash, hang or take more memory than the limit
// allows.

#include "fuzz/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const leat::fuzz::ImageFuzzer fuzzer;
  // Most inputs would be no JPEG at all without this.
  fuzzer.run(std::string("\xff\xd8\xff"), {data, size});
  return 0;
}
