// One mutex for many paths.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

#include "leat/base/mutex.h"

namespace leat {

/// The mutexes that writes of objects take, so that nothing comes between
/// looking at an object and replacing it. Two paths may share one.
///
/// Threads: any.
class PathLocks {
 public:
  Mutex& of(std::string_view path) {
    return stripes_[std::hash<std::string_view>()(path) % stripes_.size()];
  }

 private:
  std::array<Mutex, 64> stripes_;
};

}  // namespace leat
