#include "leat/index/container.h"

#include <algorithm>

namespace leat {

namespace {

bool ends_with_any(std::string_view name,
                   std::span<const std::string_view> endings) {
  return std::ranges::any_of(
      endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Takes digits off the end; false if there are none.
bool take_digits(std::string_view& name) {
  const std::size_t before = name.size();
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') {
    name.remove_suffix(1);
  }
  return name.size() != before;
}

bool take_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.remove_suffix(end.size());
  return true;
}

/// The name up to the ending of a container of this kind.
std::string_view ending_part(std::string_view name, const Container& of) {
  return of.is_numbered_behind ? without_shard_number(name) : name;
}

}  // namespace

const Container* container_of(std::string_view name) {
  for (const Container* container : containers()) {
    const std::string_view part = ending_part(name, *container);
    if (part.ends_with(container->ending) ||
        ends_with_any(part, container->other_endings)) {
      return container;
    }
  }
  return nullptr;
}

bool is_compressed_shard(std::string_view name) {
  return std::ranges::any_of(containers(), [&](const Container* container) {
    return ends_with_any(ending_part(name, *container), container->compressed);
  });
}

std::string_view without_shard_number(std::string_view name) {
  std::string_view rest = name;
  const bool is_numbered = take_digits(rest) && take_end(rest, "-of-") &&
                           take_digits(rest) && take_end(rest, "-");
  return is_numbered ? rest : name;
}

}  // namespace leat
