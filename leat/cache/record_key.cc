#include "leat/cache/record_key.h"

#include <array>
#include <cstring>
#include <string>

#include "leat/base/buffer.h"

namespace leat {

RecordKey record_key(const RecordName& name) {
  const std::array<std::uint64_t, 4> numbers = {
      name.url.size(), name.etag.size(), name.offset, name.length_bytes};
  std::string text;
  text.reserve(sizeof numbers + name.url.size() + name.etag.size());
  text.append(as_text(std::as_bytes(std::span(numbers))));
  text.append(name.url).append(name.etag);
  if (name.made_by) {
    const std::array<std::uint64_t, 2> made = {name.made_by->high,
                                               name.made_by->low};
    text.append(as_text(std::as_bytes(std::span(made))));
  }
  return xxh3_128(as_bytes(text));
}

}  // namespace leat
