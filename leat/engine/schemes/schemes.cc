// The list of drivers, by scheme. It has this file to itself: a program that
// defines schemes() in a source of its own has other drivers, as tests/scheme
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
