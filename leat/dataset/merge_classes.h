// The classes of several catalogues, merged by name.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"

namespace leat {

struct MergedClasses {
  std::vector<std::string> names;
  /// By part, then by the part's own number: the index into `names`. All are
  /// empty if every part has the same classes.
  std::vector<std::vector<std::int64_t>> numbers;
};

/// The names of all parts: the sorted union if each part's names are sorted, as
/// those of folders are; otherwise in order of first appearance. Parts that
/// agree keep their order.
///
/// REQUIRES: at least one part.
/// Errors:
///   kInvalidArgument  some parts have names of classes and others have none
Result<MergedClasses> merge_classes(
    std::span<const std::shared_ptr<const Catalogue>> parts);

}  // namespace leat
