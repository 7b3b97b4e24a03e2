#include "leat/agent/user_name.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(UserNameTest, NamesWhoHasOneAndNobodyElse) {
  UserNames names;

  EXPECT_EQ(names.of(0), "root");
  EXPECT_EQ(names.of(3999999999), "");
  EXPECT_EQ(names.of(0), "root");
}

}  // namespace
}  // namespace leat
