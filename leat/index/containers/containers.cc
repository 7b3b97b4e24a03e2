// The list of containers. It has this file to itself: a program that defines
// containers() in a source of its own has other containers, as tests/container
// does.

#include "leat/index/containers/containers.h"

#include <array>

namespace leat {

std::span<const Container* const> containers() {
  static constexpr std::array kContainers = {&kTarContainer,
                                             &kTfrecordContainer};
  return kContainers;
}

}  // namespace leat
