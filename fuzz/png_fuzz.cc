// Any bytes through the PNG header parser, the decoder and a program that
// crops. Nothing may crash, hang or take more memory than the limit allows.

#include "fuzz/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const leat::fuzz::ImageFuzzer fuzzer;
  // Most inputs would be no PNG at all without this.
  fuzzer.run(std::string("\x89PNG\r\n\x1a\n"), {data, size});
  return 0;
}
