#include "leat/index/places_note.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat {
namespace {

class PlacesNoteTest : public ::testing::Test {
 protected:
  PlacesNoteTest() {
    std::string name = ::testing::TempDir() + "placesXXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~PlacesNoteTest() override { std::filesystem::remove_all(folder_); }
  PlacesNoteTest(const PlacesNoteTest&) = delete;
  PlacesNoteTest& operator=(const PlacesNoteTest&) = delete;

  std::string catalogue() const { return folder_ + "/kept/a.leatcat"; }
  std::string note() const { return catalogue() + ".places"; }
  void write_note(const std::string& text) const {
    std::ofstream(note(), std::ios::binary) << text;
  }

 private:
  std::string folder_;
};

TEST_F(PlacesNoteTest, GivesBackWhatWasWritten) {
  const std::vector<NotedPlace> places = {
      {"s3://bucket", "s3://bucket endpoint"}, {"/a\nb 3 c", ""}};
  EXPECT_FALSE(read_places(catalogue()));

  ASSERT_TRUE(write_places(catalogue(), places));

  EXPECT_EQ(read_places(catalogue()), places);
}

TEST_F(PlacesNoteTest, ADamagedNoteIsNone) {
  ASSERT_TRUE(write_places(catalogue(), {{"s3://bucket", "it"}}));
  const std::string begin = "leat places 1\n";
  for (const std::string& text :
       {std::string(), begin, std::string("leat places 2\n1 a\n1 b\n"),
        begin + "1 a\n", begin + "9 a\n1 b\n", begin + "1 ab\n1 b\n",
        begin + "-1 a\n1 b\n", begin + "99999999999999999999999 a\n1 b\n",
        begin + "1 a\n1 b", begin + "1 a\n1 b\nmore"}) {
    write_note(text);
    EXPECT_FALSE(read_places(catalogue())) << text;
  }
  write_note(begin + "1 a\n1 b\n");
  EXPECT_TRUE(read_places(catalogue()));
}

TEST_F(PlacesNoteTest, ANoteThatOthersCanWriteIsNone) {
  ASSERT_TRUE(write_places(catalogue(), {{"s3://bucket", "it"}}));

  ASSERT_EQ(::chmod(note().c_str(), 0666), 0);

  EXPECT_FALSE(read_places(catalogue()));
}

}  // namespace
}  // namespace leat
