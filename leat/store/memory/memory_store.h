// Objects in the process's memory.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "leat/store/store.h"

namespace leat {

/// From key to bytes.
using MemoryObjects = std::map<std::string, std::string, std::less<>>;

struct MemoryStoreOptions {
  std::size_t most_keys_per_page = 1000;
  /// The prefix of url_of()'s results.
  std::string url = "memory://";
};

/// A store over a map. For tests, and as the driver to copy for a new one.
///
/// A read is done before read() returns. ETags are hashes of the bytes.
std::unique_ptr<Store> open_memory_store(MemoryObjects objects = {},
                                         MemoryStoreOptions options = {});

}  // namespace leat
