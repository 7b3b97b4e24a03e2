#include "leat/engine/quarantine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

class QuarantineTest : public ::testing::Test {
 protected:
  QuarantineTest() {
    std::string made = (std::filesystem::temp_directory_path() / "leat-XXXXXX");
    root_ = ::mkdtemp(made.data());
    path_ = root_ / "quarantine" / "a.tsv";
  }
  ~QuarantineTest() override { std::filesystem::remove_all(root_); }

  Quarantine opened(bool passes_bad = true,
                    std::vector<std::string> filters = {"large"}) {
    return Quarantine({.path = path_,
                       .url = "photos",
                       .passes_bad = passes_bad,
                       .filters = std::move(filters),
                       .version_of = [this](SampleId) { return version_; }});
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path root_;
  std::filesystem::path path_;
  std::optional<std::string> version_ = "v1";
};

const Exclusion kTorn{
    {17}, Excluded::kBad, "ant/17.jpg", "cut\tshort\nhere", "v1"};
const Exclusion kSmall{{18}, Excluded::kSkipped, "ant/18.jpg", "large", "v1"};

TEST(ExclusionTest, LinesAreReadAsTheyWereWritten) {
  const std::string line = to_line(kTorn);
  EXPECT_EQ(line, "bad\t17\tv1\tant/17.jpg\tcut short here\n");
  const auto read =
      parse_exclusion(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sample.value, 17u);
  EXPECT_EQ(read->why, Excluded::kBad);
  EXPECT_EQ(read->key, "ant/17.jpg");
  EXPECT_EQ(read->cause, "cut short here");
  EXPECT_EQ(read->version, "v1");
}

TEST(ExclusionTest, OtherLinesAreNone) {
  for (const char* line :
       {"", "bad", "bad\t17", "bad\t17\tv", "bad\t17\tv\tkey",
        "good\t17\tv\tkey\tx", "bad\t-1\tv\tkey\tx", "bad\t1x\tv\tkey\tx",
        "bad\t\tv\tkey\tx", "bad\t99999999999999999999999\tv\tkey\tx"}) {
    EXPECT_FALSE(parse_exclusion(line)) << line;
  }
}

TEST_F(QuarantineTest, LaterRunsKnowWhatAnEarlierOneFound) {
  {
    Quarantine first = opened();
    first.samples().add(kTorn);
    first.samples().add(kTorn);
    first.samples().add(kSmall);
  }
  Quarantine later = opened();
  later.look();

  EXPECT_EQ(later.samples().find({17}), Excluded::kBad);
  EXPECT_EQ(later.samples().find({18}), Excluded::kSkipped);
  EXPECT_FALSE(later.samples().find({16}));
  EXPECT_EQ(text(), to_line(kTorn) + to_line(kSmall)) << "each once";
}

TEST_F(QuarantineTest, WhatWasReplacedIsReadAgain) {
  opened().samples().add(kTorn);
  for (const auto& now : {std::optional<std::string>("v2"), {}}) {
    version_ = now;
    Quarantine later = opened();
    later.look();
    EXPECT_FALSE(later.samples().find({17}));
  }
}

TEST_F(QuarantineTest, OtherRanksLearnItWhenTheyLook) {
  Quarantine one = opened();
  Quarantine other = opened();
  other.look();
  one.samples().add(kTorn);
  EXPECT_FALSE(other.samples().find({17}));
  other.look();
  EXPECT_TRUE(other.samples().find({17}));
}

TEST_F(QuarantineTest, BadOnesAreReadAgainUnlessTheyMayBePassedOver) {
  opened().samples().add(kTorn);
  Quarantine strict = opened(/*passes_bad=*/false);
  strict.look();
  EXPECT_FALSE(strict.samples().find({17}));
}

TEST_F(QuarantineTest, AFilterThatHasNoNameIsNotKept) {
  opened(true, {}).samples().add(kSmall);
  EXPECT_EQ(text(), "");
  opened().samples().add(kSmall);
  Quarantine without = opened(true, {"other"});
  without.look();
  EXPECT_FALSE(without.samples().find({18}));
}

TEST_F(QuarantineTest, AFileThatOthersCanWriteIsNotBelieved) {
  opened().samples().add(kTorn);
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  Quarantine later = opened();
  later.look();
  EXPECT_FALSE(later.samples().find({17}));
}

TEST_F(QuarantineTest, LinesThatMakeNoSenseAreLeftOut) {
  opened().samples().add(kTorn);
  {
    std::ofstream file(path_, std::ios::app);
    file << std::string(100'000, 'x') << "\nbad\t5\tk\tc\nbad\t6";
  }
  Quarantine later = opened();
  later.look();
  EXPECT_TRUE(later.samples().find({17}));
  EXPECT_FALSE(later.samples().find({6})) << "its line is not whole yet";
}

}  // namespace
}  // namespace leat
