// Helpers that the themes of the conformance suite share. Internal to it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/store/testing/conformance.h"

namespace leat::testing {

// One for each file of tests. Nothing else names them, and a linker leaves out
// of a library what nobody names: conforming() calls these, which do nothing.
void join_reads();
void join_lists();
void join_writes();
void join_stops();

/// Bytes that tell where they are from.
std::string patterned(std::size_t size, std::uint64_t seed = 1);

std::vector<std::string> keys_of(const ListPage& page);

/// Keys that are easily misspelled on their way, in no order.
const std::vector<std::string>& odd_keys();

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message()
#define EXPECT_ERROR(result, expected)                                    \
  do {                                                                    \
    const auto& leat_result = (result);                                   \
    ASSERT_FALSE(leat_result);                                            \
    EXPECT_EQ(to_string(leat_result.error().code()), to_string(expected)) \
        << leat_result.error().message();                                 \
  } while (false)

}  // namespace leat::testing
