// The list of drivers, by scheme. The list has its own file, so that a
// program which defines schemes() itself has other drivers, as tests/scheme
// does.

#include "leat/engine/schemes/schemes.h"

#include <array>

namespace leat {

std::span<const Scheme* const> schemes() {
#define LEAT_ADDRESS(name) &name,
  static constexpr std::array kAll = {LEAT_SCHEMES(LEAT_ADDRESS)};
#undef LEAT_ADDRESS
  return kAll;
}

}  // namespace leat
