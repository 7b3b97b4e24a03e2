#include "leat/index/container.h"

#include <algorithm>

namespace leat {

const Container* container_of(std::string_view name) {
  for (const Container* container : containers()) {
    if (name.ends_with(container->ending)) return container;
  }
  return nullptr;
}

bool is_compressed_shard(std::string_view name) {
  return std::ranges::any_of(containers(), [&](const Container* container) {
    return std::ranges::any_of(
        container->compressed,
        [&](std::string_view ending) { return name.ends_with(ending); });
  });
}

}  // namespace leat
