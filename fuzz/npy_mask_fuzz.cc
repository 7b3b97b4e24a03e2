// Any bytes as a mask in a .npy through the header parser, the decoder and
// programs that crop. Nothing may crash or hang.

#include "fuzz/image_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  static const leat::fuzz::ImageFuzzer fuzzer;
  // Most inputs would be no .npy at all without this.
  fuzzer.run(std::string("\x93NUMPY"), {data, size});
  return 0;
}
