// Reads any bytes as a tf.train.Feature of numbers. No more numbers can come
// out than there are bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>

#include "leat/codec/tfrecord/feature_numbers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto numbers =
      leat::read_feature_numbers(std::as_bytes(std::span(data, size)));
  if (!numbers) return 0;
  const std::size_t count =
      std::visit([](const auto& each) { return each.size(); }, *numbers);
  if (count >= size) std::abort();
  return 0;
}
