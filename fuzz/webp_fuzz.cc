// Any bytes through the WebP header parser, the decoder and a program that
// crops. Nothing may crash, hang or take more memory than the limit allows.

#include "fuzz/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const leat::fuzz::ImageFuzzer fuzzer;
  // Most inputs would be no WebP at all without this; the size that the file
  // claims is that of what follows.
  std::string magic = "RIFF";
  for (int i = 0; i < 4; ++i) {
    magic += static_cast<char>((size + 3) >> (8 * i) & 0xff);
  }
  fuzzer.run(magic + "WEBP", {data, size});
  return 0;
}
