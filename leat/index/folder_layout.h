// Decides from names alone what a folder of objects contains.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/store/store.h"

namespace leat {

/// True for objects that are not data: a name with a part that begins with
/// a dot, a folder marker (a key that ends with a slash), Spark's
/// `_SUCCESS`.
bool is_hidden(std::string_view relative_key);

/// Shards if every object is a container (container.h), otherwise objects.
///
/// Errors:
///   kInvalidArgument  shards and other objects mixed (names one of each),
///                     or nothing but compressed archives
Result<Layout> layout_of(std::span<const ObjectInfo> objects);

/// Gives an object the number of its top folder.
///
/// Threads: any; it never changes.
class Labels {
 public:
  /// Numbers the sorted names of the top folders or, if given, `classes` in
  /// their order. Without any folder there are no labels.
  ///
  /// Errors:
  ///   kInvalidArgument  objects both inside and outside of folders (names one
  ///                     of each), a folder that is not in `classes`, or
  ///                     classes without folders
  static Result<Labels> make(std::span<const ObjectInfo> objects,
                             const std::vector<std::string>& classes);

  /// Empty if there are no labels.
  const std::vector<std::string>& classes() const { return classes_; }

  /// REQUIRES: !classes().empty(), and the key is of an object given to make().
  std::int64_t label_of(std::string_view relative_key) const;

 private:
  std::vector<std::string> classes_;
  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

}  // namespace leat
