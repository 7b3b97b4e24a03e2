#include "leat/bucket/key_walk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

namespace leat {
namespace {

namespace fs = std::filesystem;

/// A folder with an empty file per key; gone at the end.
class KeyWalkTest : public ::testing::Test {
 protected:
  KeyWalkTest() : root_(::testing::TempDir() + "key_walk_test") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~KeyWalkTest() override { fs::remove_all(root_); }

  void put(const std::set<std::string>& keys) {
    for (const std::string& key : keys) {
      fs::create_directories((root_ / key).parent_path());
      std::ofstream(root_ / key).put('x');
    }
  }

  /// "key" and "prefix/|" joined by spaces, and "..." if cut.
  std::string page(const KeyQuery& query) {
    const auto page = walk_keys(root_.string(), query, folders_);
    EXPECT_TRUE(page) << page.error().message();
    std::string text;
    for (const FoundKey& found : page->found) {
      text += (text.empty() ? "" : " ") + found.key;
      if (found.is_prefix) text += "|";
    }
    return page->is_cut ? text + " ..." : text;
  }

  const fs::path root_;
  FolderCache folders_{1000};
};

TEST_F(KeyWalkTest, GoesInByteOrderAcrossFolders) {
  put({"a/2", "a/1/x", "a-b", "a.txt", "a0", "A", "b"});

  EXPECT_EQ(page({}), "A a-b a.txt a/1/x a/2 a0 b");
}

TEST_F(KeyWalkTest, KeepsToThePrefix) {
  put({"train/cat/1", "train/cat/2", "train/catfish/3", "val/1"});

  EXPECT_EQ(page({.prefix = "train/cat"}),
            "train/cat/1 train/cat/2 train/catfish/3");
  EXPECT_EQ(page({.prefix = "train/cat/"}), "train/cat/1 train/cat/2");
  EXPECT_EQ(page({.prefix = "train/cat/2"}), "train/cat/2");
  EXPECT_EQ(page({.prefix = "none/at/all"}), "");
  EXPECT_EQ(page({.prefix = "train/cat/1/x"}), "");
  EXPECT_EQ(page({.prefix = "../"}), "");
}

TEST_F(KeyWalkTest, FoldsAtTheDelimiter) {
  put({"a/1", "a/2", "b", "c/d/1", "c/d/2"});
  fs::create_directories(root_ / "empty/inside");

  EXPECT_EQ(page({.delimiter = "/"}), "a/| b c/|");
  EXPECT_EQ(page({.prefix = "c/", .delimiter = "/"}), "c/d/|");
  EXPECT_EQ(page({.prefix = "c", .delimiter = "/"}), "c/|");
  EXPECT_EQ(page({.prefix = "a/", .delimiter = "/"}), "a/1 a/2");
}

TEST_F(KeyWalkTest, FoldsAtAnyDelimiter) {
  put({"x-1/a", "x-2/a", "y-1", "y-2", "z"});

  EXPECT_EQ(page({.delimiter = "-"}), "x-| y-| z");
  EXPECT_EQ(page({.delimiter = "-1"}), "x-1| x-2/a y-1| y-2 z");
  EXPECT_EQ(page({.delimiter = "1/a"}), "x-1/a| x-2/a y-1 y-2 z");
}

TEST_F(KeyWalkTest, PagesContinueWhereTheyWereCut) {
  put({"a/1", "a/2", "b", "c/1", "c/2", "d"});

  EXPECT_EQ(page({.most = 2}), "a/1 a/2 ...");
  EXPECT_EQ(page({.after = "a/2", .most = 2}), "b c/1 ...");
  EXPECT_EQ(page({.after = "c/1", .most = 2}), "c/2 d");
  EXPECT_EQ(page({.delimiter = "/", .most = 2}), "a/| b ...");
  EXPECT_EQ(page({.delimiter = "/", .after = "a/", .most = 1}), "b ...");
  EXPECT_EQ(page({.delimiter = "/", .after = "c/"}), "d");
  // Not at the end of a group: its rest still stands for it.
  EXPECT_EQ(page({.delimiter = "/", .after = "a/1"}), "a/| b c/| d");
  EXPECT_EQ(page({.delimiter = "/", .after = "a/2"}), "b c/| d");
  EXPECT_EQ(page({.most = 0}), "");
}

TEST_F(KeyWalkTest, SeesChangesAtOnce) {
  put({"a", "b"});
  EXPECT_EQ(page({}), "a b");
  put({"c"});
  EXPECT_EQ(page({}), "a b c");
  fs::remove(root_ / "a");
  EXPECT_EQ(page({}), "b c");
}

TEST_F(KeyWalkTest, LeavesOutWhatIsNoFile) {
  put({"a"});
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink(root_ / "a", root_ / "link");
  fs::create_symlink(root_ / "nowhere", root_ / "dangling");

  EXPECT_EQ(page({}), "a link");
}

TEST_F(KeyWalkTest, RefusesALinkThatLeadsBack) {
  put({"a/1", "b"});
  fs::create_symlink(root_, root_ / "a/self");

  const auto all = walk_keys(root_.string(), {}, folders_);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_NE(all.error().message().find("a/self"), std::string::npos)
      << all.error().message();

  // A page that does not come to it is as it was.
  EXPECT_EQ(page({.most = 0}), "");
  EXPECT_EQ(page({.prefix = "b"}), "b");
  EXPECT_EQ(page({.delimiter = "/"}), "a/| b");
}

TEST_F(KeyWalkTest, FollowsTwoLinksToOneFolder) {
  put({"real/1"});
  fs::create_directory_symlink(root_ / "real", root_ / "one");
  fs::create_directory_symlink(root_ / "real", root_ / "two");

  EXPECT_EQ(page({}), "one/1 real/1 two/1");
}

/// S3's rule: keys after `after` with the prefix, folded, `most` of them.
std::string expected_page(const std::set<std::string>& keys,
                          const KeyQuery& query) {
  std::string text;
  std::string last_group;
  std::size_t count = 0;
  for (const std::string& key : keys) {
    if (!key.starts_with(query.prefix) || key <= query.after) continue;
    std::string shown = key;
    if (!query.delimiter.empty()) {
      const auto at = key.find(query.delimiter, query.prefix.size());
      if (at != std::string::npos) {
        shown = key.substr(0, at + query.delimiter.size());
        if (shown == last_group || shown == query.after) continue;
        last_group = shown;
        shown += "|";
      }
    }
    if (count++ == query.most) return text + " ...";
    text += (text.empty() ? "" : " ") + shown;
  }
  return text;
}

TEST_F(KeyWalkTest, AgreesWithASortedSetOnRandomTrees) {
  std::mt19937 random(5);  // NOLINT: the same in every run.
  const std::string letters = "ab-0";
  const auto name = [&] {
    std::string text;
    for (std::size_t i = 0; i <= random() % 2; ++i) {
      text += letters[random() % letters.size()];
    }
    return text;
  };
  std::set<std::string> keys;
  std::set<std::string> folders;
  for (int i = 0; i < 120; ++i) {
    std::string key = name();
    for (std::size_t depth = random() % 3; depth > 0; --depth) {
      if (keys.contains(key)) break;
      folders.insert(key);
      key += "/" + name();
    }
    bool is_file_below = false;
    for (std::size_t at = 0; (at = key.find('/', at)) != std::string::npos;
         ++at) {
      is_file_below = is_file_below || keys.contains(key.substr(0, at));
    }
    if (!folders.contains(key) && !is_file_below && !fs::exists(root_ / key)) {
      keys.insert(key);
      put({key});
    }
  }
  ASSERT_GT(keys.size(), 40u);

  for (int i = 0; i < 2000; ++i) {
    KeyQuery query;
    const auto some_key = [&] {
      const auto& key = *std::next(keys.begin(), long(random() % keys.size()));
      return key.substr(0, random() % (key.size() + 2));
    };
    if (random() % 2) query.prefix = some_key();
    if (random() % 2) query.after = some_key();
    if (random() % 2) query.delimiter = random() % 3 ? "/" : "-";
    query.most = random() % 2 ? 1000 : 1 + random() % 5;
    ASSERT_EQ(page(query), expected_page(keys, query))
        << "prefix '" << query.prefix << "' after '" << query.after
        << "' delimiter '" << query.delimiter << "'";
  }
}

}  // namespace
}  // namespace leat
