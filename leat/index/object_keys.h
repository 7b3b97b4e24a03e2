// The objects that a table names, each once.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "leat/dataset/catalogue_writer.h"

namespace leat {

/// Numbers objects in the order in which they were first named. An object is
/// the number of a place and a key in it.
///
/// Beside their texts, keys that come in rising order take no memory to be
/// found again. The first that does not makes a hash table: 4 bytes a slot, and
/// at most two of three slots are taken.
///
/// Threads: one at a time.
class ObjectKeys {
 public:
  /// The number of the object; a new one is added.
  std::uint32_t number_of(std::uint32_t place, std::string_view key);

  std::size_t size() const { return keys_.ends.size(); }
  std::string_view key(std::size_t object) const { return keys_.at(object); }
  std::uint32_t place(std::size_t object) const { return places_[object]; }

  /// The engine's names of all objects: their keys, or, if there are several
  /// places, their keys in a joined store. Ends the object's use.
  TextPool take_names(bool has_several_places) &&;

 private:
  std::uint32_t add(std::uint32_t place, std::string_view key);
  bool is(std::uint32_t object, std::uint32_t place,
          std::string_view key) const;
  /// The slot that has the object, or an empty one for it.
  std::uint32_t& slot_of(std::uint32_t place, std::string_view key);
  /// Makes the table with room for more.
  void make_table();

  TextPool keys_;
  std::vector<std::uint8_t> places_;
  bool are_rising_ = true;            ///< And all in the first place.
  std::vector<std::uint32_t> slots_;  ///< A power of two; empty: no table.
  /// Nobody outside can choose keys that all meet in one slot.
  const std::uint64_t seed_ = std::random_device{}();
};

}  // namespace leat
