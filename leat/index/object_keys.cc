#include "leat/index/object_keys.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/hash.h"
#include "leat/dataset/derive.h"

namespace leat {
namespace {

constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kFewestSlots = 1024;

}  // namespace

std::uint32_t ObjectKeys::number_of(std::uint32_t place, std::string_view key) {
  if (are_rising_) {
    const bool is_first = size() == 0;
    if (place == 0 && (is_first || key > keys_.at(size() - 1))) {
      return add(place, key);
    }
    const auto last = static_cast<std::uint32_t>(size() - 1);
    if (!is_first && is(last, place, key)) return last;
    are_rising_ = false;
    make_table();
  }
  std::uint32_t& slot = slot_of(place, key);
  if (slot != kEmpty) return slot;
  const std::uint32_t number = add(place, key);
  slot = number;
  if (3 * size() > 2 * slots_.size()) make_table();
  return number;
}

TextPool ObjectKeys::take_names(bool has_several_places) && {
  std::vector<std::uint32_t>().swap(slots_);
  if (!has_several_places) return std::move(keys_);
  TextPool names;
  names.ends.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    names.text += joined_prefix(places_[i]);
    names.add(keys_.at(i));
  }
  return names;
}

std::uint32_t ObjectKeys::add(std::uint32_t place, std::string_view key) {
  const auto number = static_cast<std::uint32_t>(size());
  LEAT_CHECK(place <= std::numeric_limits<std::uint8_t>::max());
  places_.push_back(static_cast<std::uint8_t>(place));
  keys_.add(key);
  return number;
}

bool ObjectKeys::is(std::uint32_t object, std::uint32_t place,
                    std::string_view key) const {
  return places_[object] == place && keys_.at(object) == key;
}

std::uint32_t& ObjectKeys::slot_of(std::uint32_t place, std::string_view key) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = xxh3_64(as_bytes(key), seed_ + place) & mask;
  while (slots_[at] != kEmpty && !is(slots_[at], place, key)) {
    at = (at + 1) & mask;
  }
  return slots_[at];
}

void ObjectKeys::make_table() {
  const std::size_t slots = std::bit_ceil(std::max(kFewestSlots, 2 * size()));
  std::vector<std::uint32_t>().swap(slots_);
  slots_.assign(slots, kEmpty);
  for (std::size_t i = 0; i < size(); ++i) {
    slot_of(places_[i], keys_.at(i)) = static_cast<std::uint32_t>(i);
  }
}

}  // namespace leat
