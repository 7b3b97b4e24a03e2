#include "leat/store/memory/memory_store.h"

#include "leat/store/testing/conformance.h"

namespace leat::testing {

INSTANTIATE_TEST_SUITE_P(
    Memory, StoreConformanceTest,
    conforming({.open = [](const Objects& objects) -> std::shared_ptr<Store> {
      return open_memory_store({objects.begin(), objects.end()},
                               {.most_keys_per_page = 7});
    }}));

}  // namespace leat::testing
