#include "leat/index/label_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LabelChangesTest, AClassInTheMiddleMovesThoseBehindIt) {
  EXPECT_EQ(
      label_changes({"a", "c"}, {"a", "b", "c"}),
      "class 'c' has label 2 now, and had 1: a model that learnt the "
      "former labels is wrong about these; to keep them, give leat.Dataset "
      "classes=['a', 'c', 'b']");
}

TEST(LabelChangesTest, AClassAtTheEndMovesNone) {
  EXPECT_EQ(label_changes({"a", "c"}, {"a", "c", "d"}), "");
  EXPECT_EQ(label_changes({"a", "c"}, {"a"}), "");
  EXPECT_EQ(label_changes({"a", "c"}, {"a", "c"}), "");
  EXPECT_EQ(label_changes({}, {"a"}), "");
}

TEST(LabelChangesTest, AClassThatGoesMovesThoseBehindIt) {
  const std::string said = label_changes({"a", "b", "c"}, {"a", "c"});
  EXPECT_THAT(said, HasSubstr("label 1 is class 'c' now, and was 'b', which is "
                              "gone: "));
  EXPECT_THAT(said, HasSubstr("classes=['a', 'b', 'c']"));
}

TEST(LabelChangesTest, ManyClassesAreCounted) {
  std::vector<std::string> before;
  for (int i = 0; i < 1000; ++i) before.push_back(std::to_string(i));
  std::vector<std::string> now = before;
  now.insert(now.begin(), {"+", "-"});

  const std::string said = label_changes(before, now);

  EXPECT_THAT(said, HasSubstr("class '2' has label 4 now, and had 2 and 997 "
                              "more labels are other classes: "));
  EXPECT_THAT(said, Not(HasSubstr("class '3'")));
  EXPECT_THAT(said, HasSubstr("classes= the 1000 former names in their order, "
                              "and then '+', '-'"));
}

}  // namespace
}  // namespace leat
