#include "leat/store/file/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "leat/store/testing/conformance.h"

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "leat-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }

  const fs::path& path() const { return path_; }

  void put(const std::string& key, const std::string& bytes) const {
    fs::create_directories((path_ / key).parent_path());
    std::ofstream(path_ / key, std::ios::binary) << bytes;
  }

 private:
  fs::path path_;
};

std::shared_ptr<Store> open_in_new_folder(const Objects& objects) {
  auto folder = std::make_shared<TemporaryFolder>();
  for (const auto& [key, bytes] : objects) folder->put(key, bytes);
  auto store = open_file_store(folder->path(), {.most_keys_per_page = 7});
  return owning(folder, *std::move(store));
}

class FileStoreTest : public ::testing::Test {
 protected:
  Store& store() {
    if (store_ == nullptr) {
      auto opened = open_file_store(folder_.path());
      EXPECT_TRUE(opened);
      store_ = *std::move(opened);
    }
    return *store_;
  }

  Result<std::vector<std::string>> keys(const ListRequest& request = {}) {
    LEAT_TRY(const ListPage page, store().list(request, {}));
    std::vector<std::string> keys;
    for (const ObjectInfo& object : page.objects) keys.push_back(object.key);
    return keys;
  }

  ErrorCode read_error(const std::string& key) {
    std::byte byte{};
    auto result = read_range(
        store(), {.object = {.key = key}, .into = std::span(&byte, 1)}, {});
    EXPECT_FALSE(result) << key;
    return result ? ErrorCode::kInternal : result.error().code();
  }

  TemporaryFolder folder_;
  TemporaryFolder outside_;
  std::unique_ptr<Store> store_;
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(File, StoreConformanceTest,
                         conforming({.open = &open_in_new_folder}));

TEST_F(FileStoreTest, SaysWhyAFolderCannotBeOpened) {
  folder_.put("file", "x");

  const auto missing = open_file_store(folder_.path() / "missing");
  const auto file = open_file_store(folder_.path() / "file");

  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("missing"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), ErrorCode::kInvalidArgument);
}

TEST_F(FileStoreTest, RefusesKeysThatLeaveTheRoot) {
  outside_.put("secret", "x");
  const std::string up = "../" + outside_.path().filename().string();

  for (const std::string& key : std::vector<std::string>{
           up + "/secret", std::string("a/../../x"), std::string("./a"),
           std::string("/etc/passwd"), std::string("a//b"), std::string("a/"),
           std::string(""), std::string("a\0b", 3)}) {
    EXPECT_EQ(read_error(key), ErrorCode::kInvalidArgument) << key;
    EXPECT_FALSE(store().write(key, {}, {})) << key;
  }
  EXPECT_FALSE(fs::exists(outside_.path() / "x"));
}

TEST_F(FileStoreTest, FollowsLinksThatStayInside) {
  folder_.put("data/x", "hello");
  fs::create_symlink("data/x", folder_.path() / "relative");
  fs::create_symlink(folder_.path() / "data" / "x",
                     folder_.path() / "absolute");
  fs::create_directory_symlink("data", folder_.path() / "more");

  const auto listed = keys();

  ASSERT_TRUE(listed) << listed.error().message();
  EXPECT_THAT(*listed, ElementsAre("absolute", "data/x", "more/x", "relative"));
  for (const std::string& key : *listed) {
    const auto bytes = read_object(store(), key, 100, {});
    ASSERT_TRUE(bytes) << key << ": " << bytes.error().message();
    EXPECT_EQ(as_text(bytes->span()), "hello");
  }
}

TEST_F(FileStoreTest, RefusesLinksThatLeadOut) {
  outside_.put("secret", "x");
  fs::create_symlink(outside_.path() / "secret", folder_.path() / "file");
  fs::create_directory_symlink(outside_.path(), folder_.path() / "folder");

  EXPECT_EQ(read_error("file"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_error("folder/secret"), ErrorCode::kInvalidArgument);
  const auto write = store().write("folder/new/file", as_bytes("x"), {});
  const auto listed = keys();

  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(fs::exists(outside_.path() / "new"));
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(listed.error().message(), HasSubstr("leads out of"));
}

TEST_F(FileStoreTest, ListsNeitherPipesNorDeadLinksNorHalfWrittenFiles) {
  folder_.put("a", "x");
  folder_.put(".hidden", "x");
  folder_.put(".leat-write-1", "x");
  fs::create_symlink("nowhere", folder_.path() / "dead");
  ASSERT_EQ(mkfifo((folder_.path() / "pipe").c_str(), 0600), 0);

  const auto listed = keys();

  ASSERT_TRUE(listed) << listed.error().message();
  EXPECT_THAT(*listed, ElementsAre(".hidden", "a"));
  EXPECT_EQ(read_error("pipe"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(read_error("dead"), ErrorCode::kNotFound);
}

TEST_F(FileStoreTest, FindsACircleOfLinks) {
  folder_.put("a/x", "x");
  fs::create_directory_symlink("..", folder_.path() / "a" / "up");

  const auto listed = keys();

  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(listed.error().message(), HasSubstr("leads back to"));
}

TEST_F(FileStoreTest, NoticesAFileThatChangedAtEqualSize) {
  folder_.put("a", "before");
  const auto info = store().stat("a", {});
  ASSERT_TRUE(info);
  folder_.put("a", "afters");
  // Time stamps are coarse: make sure that it is another one.
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 0},
                             {.tv_sec = 1, .tv_nsec = 1}};
  utimensat(AT_FDCWD, (folder_.path() / "a").c_str(), times, 0);

  std::byte byte{};
  const auto result = read_range(
      store(),
      {.object = {.key = "a", .etag = info->etag}, .into = std::span(&byte, 1)},
      {});

  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCorrupt);
}

TEST_F(FileStoreTest, LeavesNoTemporaryFileBehindAFailedWrite) {
  folder_.put("a/b", "x");

  // A folder is in the way of the name.
  const auto written = store().write("a", as_bytes("y"), {});

  EXPECT_FALSE(written);
  std::size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename(), "a");
    ++entries;
  }
  EXPECT_EQ(entries, 1u);
}

TEST_F(FileStoreTest, ListsAgainFromAnyPage) {
  for (int i = 0; i < 20; ++i) folder_.put("k" + std::to_string(10 + i), "x");
  auto opened = open_file_store(folder_.path(), {.most_keys_per_page = 6});
  ASSERT_TRUE(opened);
  Store& paged = **opened;
  const auto first = paged.list({}, {});
  ASSERT_TRUE(first);
  const auto second = paged.list({.resume = first->resume}, {});
  ASSERT_TRUE(second);

  const auto again = paged.list({.resume = first->resume}, {});

  ASSERT_TRUE(again);
  ASSERT_EQ(again->objects.size(), 6u);
  EXPECT_EQ(again->objects.front().key, second->objects.front().key);
  EXPECT_EQ(again->objects.front().key, "k16");
}

}  // namespace leat::testing
