// A stranger's program: from the installed headers and leat::leat alone.
#include <cstdio>

#include "leat/base/units.h"
#include "leat/plan/order.h"
#include "leat/runtime/limits.h"

int main() {
  const leat::EpochOrder order(10, {.seed = 1}, nullptr, /*epoch=*/0);
  const leat::SampleId first = order.at(0);
  const auto size = leat::parse_bytes("64MiB");
  std::printf("first sample %d of 10, %u threads\n",
              static_cast<int>(first.value),
              leat::effective_limits().threads());
  const bool is_right =
      order.position_of(first) == 0 && size && *size == 64 * leat::kMiB;
  return is_right ? 0 : 1;
}
