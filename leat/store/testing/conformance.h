// The rules for every store, as tests that a driver joins in three lines:
//
//     INSTANTIATE_TEST_SUITE_P(Memory, StoreConformanceTest, conforming({
//         .open = [](const Objects& objects) -> std::shared_ptr<Store> {
//           return open_memory_store(...); }}));
//
// and by linking leat_store_testing. The capabilities are the store's own
// traits(): it must do all that it claims.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leat/store/store.h"

namespace leat::testing {

/// From key to bytes.
using Objects = std::map<std::string, std::string>;

struct StoreUnderTest {
  /// Opens a new store that holds exactly `objects`. The folder or server under
  /// it lives as long as the pointer; see owning().
  std::function<std::shared_ptr<Store>(const Objects& objects)> open;
  /// False where a key may not be odd, e.g. on a file system without UTF-8.
  bool takes_odd_keys = true;
  /// Reads that run at once in the test of many.
  std::size_t most_reads = 64;
};

// GoogleTest finds it by this name.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const StoreUnderTest& store, std::ostream* out);

/// A pointer to `*store` that keeps `store` and, longer, `stands_on` alive.
template <class Fixture>
std::shared_ptr<Store> owning(std::shared_ptr<Fixture> stands_on,
                              std::unique_ptr<Store> store) {
  struct Both {
    std::shared_ptr<Fixture> stands_on;
    std::unique_ptr<Store> store;  // Dies first.
  };
  auto both =
      std::make_shared<Both>(Both{std::move(stands_on), std::move(store)});
  return {both, both->store.get()};
}

/// The parameter of INSTANTIATE_TEST_SUITE_P.
decltype(::testing::ValuesIn(std::vector<StoreUnderTest>())) conforming(
    StoreUnderTest store);

class StoreConformanceTest : public ::testing::TestWithParam<StoreUnderTest> {
 protected:
  /// Opens what the test needs; keeps it until the test ends.
  Store& open(const Objects& objects);
  Store& store() { return *store_; }
  void close() { store_.reset(); }

  /// Reads [offset, offset + size) and waits.
  Result<std::string> read(const ObjectId& object, std::uint64_t offset,
                           std::size_t size, std::stop_token stop = {});
  /// All pages of a listing, one after another.
  Result<ListPage> list_all(ListRequest request);

 private:
  std::shared_ptr<Store> store_;
};

}  // namespace leat::testing
