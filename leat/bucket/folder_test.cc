#include "leat/bucket/folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/bucket/bucket_parts.h"
#include "leat/bucket/object_cache.h"
#include "leat/bucket/uploads.h"

namespace leat {
namespace {

namespace fs = std::filesystem;

/// A folder with one bucket, "b"; gone at the end.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() : root_(::testing::TempDir() + "folder_test") {
    fs::remove_all(root_);
    fs::create_directories(root_ / "b");
  }
  ~FolderTest() override { fs::remove_all(root_); }

  Folder folder() { return *Folder::open(root_.string()); }
  std::string path_of(std::string_view key) {
    return *folder().object_path("b", key);
  }
  Result<ObjectState> put(std::string_view key, std::string_view bytes,
                          std::string etag = std::string(32, 'a'),
                          std::string headers = "") {
    auto draft = folder().begin_object();
    EXPECT_TRUE(draft && draft->write(as_bytes(bytes)));
    return folder().publish(*std::move(draft), path_of(key), std::move(etag),
                            std::move(headers));
  }
  std::string text_of(std::string_view key) {
    std::ifstream file(path_of(key), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  const fs::path root_;
};

TEST_F(FolderTest, RefusesKeysThatLeaveIt) {
  for (const char* key : {"", ".", "..", "../x", "a/../../x", "a/..", "a/./b",
                          "/a", "a//b", "a/", "/../etc/passwd"}) {
    const auto path = folder().object_path("b", key);
    ASSERT_FALSE(path) << key;
    EXPECT_EQ(path.error().code(), ErrorCode::kInvalidArgument);
  }
  using std::string_literals::operator""s;
  EXPECT_FALSE(folder().object_path("b", "a\0b"s));
  EXPECT_FALSE(folder().object_path("b", std::string(256, 'x')));
  EXPECT_FALSE(folder().object_path("b", std::string(1000, '/')));
  for (const char* bucket : {"", ".", "..", ".leat", "a/b", "../b"}) {
    EXPECT_FALSE(folder().object_path(bucket, "key")) << bucket;
  }
  EXPECT_TRUE(folder().object_path("b", "..a/...b/c d"));
}

/// While it lives, no further file can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_GE(lowest, 0);
    ::close(lowest);
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(FolderTest, WithoutDescriptorsItDoesNotSayThatAnObjectIsNotThere) {
  ASSERT_TRUE(put("key", "x"));
  BucketParts parts(folder(), /*most_open=*/2, /*most_names=*/10,
                    /*its_checksums=*/false);

  const auto [path, bucket] = [&] {
    const NoDescriptors none;
    return std::pair(parts.folder.object_path("b", "key"),
                     check_bucket(parts, "b"));
  }();

  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code(), ErrorCode::kResourceExhausted);
  ASSERT_TRUE(bucket);
  EXPECT_EQ(bucket->status, 500);
  EXPECT_TRUE(parts.folder.object_path("b", "key"));
  EXPECT_FALSE(check_bucket(parts, "b"));
}

TEST_F(FolderTest, PublishesWholeObjects) {
  const auto state = put("deep/er/key", "bytes", "0123", "Content-Type: a\r\n");

  ASSERT_TRUE(state) << state.error().message();
  EXPECT_EQ(text_of("deep/er/key"), "bytes");
  const auto found = object_state(path_of("deep/er/key"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size_bytes, 5u);
  EXPECT_EQ(found->etag, state->etag);
  EXPECT_EQ(found->headers, state->headers);
  EXPECT_EQ(files(), 1u);
}

TEST_F(FolderTest, ADraftThatIsDroppedLeavesNothing) {
  {
    auto draft = folder().begin_object();
    ASSERT_TRUE(draft->write(as_bytes("half")));
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(FolderTest, DraftsOfAKilledServerGoAndThoseInUseStay) {
  auto used = folder().begin_object();
  ASSERT_TRUE(used && used->write(as_bytes("used")));
  std::ofstream(root_ / ".leat/drafts/1-0") << "nobody's";
  ASSERT_EQ(files(), 2u);

  const Folder other = folder();  // As the next server opens it.

  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(other.publish(*std::move(used), path_of("k"), "0123", ""));
  EXPECT_EQ(text_of("k"), "used");
}

TEST_F(FolderTest, TwoServersWithTheSameNumberWriteIntoTwoDrafts) {
  // As process 1 of one container does, and process 1 of another.
  const auto first_path = [this] {
    const auto pid = ::fork();
    if (pid == 0) {
      auto draft = folder().begin_object();
      std::ofstream(root_ / "first") << draft->path();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    std::ifstream file(root_ / "first");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };

  const std::string one = first_path();
  const std::string other = first_path();

  EXPECT_NE(one.substr(one.rfind('-') + 1), other.substr(other.rfind('-') + 1))
      << "the name depends on the process alone";
}

TEST_F(FolderTest, AKeyCannotBeAFolderAsWell) {
  ASSERT_TRUE(put("a/b", "1"));

  for (const char* key : {"a", "a/b/c"}) {
    const auto state = put(key, "2");
    ASSERT_FALSE(state) << key;
    EXPECT_EQ(state.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(text_of("a/b"), "1");
}

TEST_F(FolderTest, AFileChangedByOthersLosesItsNote) {
  const auto put_state = put("k", "12345", "0123", "Content-Type: a\r\n");
  std::ofstream(path_of("k")) << "54321";

  const auto state = object_state(path_of("k"));

  ASSERT_TRUE(state);
  EXPECT_NE(state->etag, put_state->etag);
  EXPECT_EQ(state->etag.size(), 32u);
  EXPECT_EQ(state->headers, "");
}

TEST_F(FolderTest, ANoteCannotForgeAReply) {
  const auto state = put("k", "x", "0123", "Content-Type: a\r\n");
  for (const std::string_view forged :
       {"\r\nHTTP/1.1 200 OK\r\n", "X: y\r\n\r\nbody", "X: y\nZ: w\r\n", "X",
        "no colon\r\n"}) {
    ASSERT_EQ(::setxattr(path_of("k").c_str(), "user.leat.headers",
                         forged.data(), forged.size(), 0),
              0);
    EXPECT_EQ(object_state(path_of("k"))->headers, "") << forged;
  }
}

TEST_F(FolderTest, RemovingTheLastObjectRemovesItsFolders) {
  ASSERT_TRUE(put("a/b/1", ""));
  ASSERT_TRUE(put("a/2", ""));

  ASSERT_TRUE(folder().remove_object("b", "a/b/1"));
  EXPECT_FALSE(fs::exists(root_ / "b/a/b"));
  EXPECT_TRUE(fs::exists(root_ / "b/a/2"));
  ASSERT_TRUE(folder().remove_object("b", "a/2"));
  EXPECT_TRUE(fs::is_empty(root_ / "b"));
  EXPECT_TRUE(folder().remove_object("b", "a/2"));  // Already gone: no error.
}

TEST_F(FolderTest, AnObjectOfARepeatIsNotRemoved) {
  ASSERT_TRUE(put("x.bin", "bytes"));
  ASSERT_TRUE(put("y.bin", "bytes"));
  const auto repeated = Folder::open(root_.string(), "b/x.bin:10");
  ASSERT_TRUE(repeated) << repeated.error().message();

  for (const char* key : {"x-00000001.bin", "x.bin"}) {
    const auto gone = repeated->remove_object("b", key);
    ASSERT_FALSE(gone) << key;
    EXPECT_EQ(gone.error().code(), ErrorCode::kPermissionDenied);
  }
  EXPECT_EQ(text_of("x.bin"), "bytes");

  EXPECT_TRUE(repeated->remove_object("b", "x-00000010.bin")) << "none of them";
  EXPECT_TRUE(repeated->remove_object("b", "y.bin"));
  EXPECT_FALSE(fs::exists(root_ / "b/y.bin"));
}

TEST_F(FolderTest, BucketsAreTheVisibleFolders) {
  fs::create_directories(root_ / ".leat");
  fs::create_directories(root_ / "a");
  std::ofstream(root_ / "file").put('x');

  const auto buckets = folder().buckets();

  ASSERT_TRUE(buckets);
  ASSERT_EQ(buckets->size(), 2u);
  EXPECT_EQ((*buckets)[0].name, "a");
  EXPECT_EQ((*buckets)[1].name, "b");
}

TEST_F(FolderTest, ANamedPipeIsNoObject) {
  ASSERT_EQ(::mkfifo((root_ / "b/pipe").c_str(), 0600), 0);

  const auto opened = open_object(path_of("pipe"));

  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::kNotFound);
}

TEST_F(FolderTest, TheCacheSeesEveryChange) {
  ObjectCache cache(/*most_open=*/2);
  ASSERT_TRUE(put("k", "old"));
  const auto first = cache.find(path_of("k"));
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, *cache.find(path_of("k")));  // The very same.

  ASSERT_TRUE(put("k", "new bytes"));
  const auto second = cache.find(path_of("k"));
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->object.state.size_bytes, 9u);
  EXPECT_EQ((*first)->object.state.size_bytes, 3u);

  fs::remove(root_ / "b/k");
  EXPECT_EQ(cache.find(path_of("k")).error().code(), ErrorCode::kNotFound);
}

TEST_F(FolderTest, TheCacheKeepsNoMoreThanItMay) {
  ObjectCache cache(/*most_open=*/2);
  for (const char* key : {"1", "2", "3"}) ASSERT_TRUE(put(key, "x"));
  const std::weak_ptr<const CachedObject> first = *cache.find(path_of("1"));
  const std::weak_ptr<const CachedObject> second = *cache.find(path_of("2"));
  ASSERT_FALSE(first.expired());

  ASSERT_TRUE(cache.find(path_of("3")));

  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(second.expired());
}

class UploadsTest : public FolderTest {
 protected:
  const Folder here_ = folder();
  Uploads uploads_{here_};

  std::string create(std::string_view key) {
    auto id = uploads_.create("b", key, "Content-Type: a\r\n");
    EXPECT_TRUE(id);
    return *id;
  }
  Result<void> put_part(const UploadName& name, int number,
                        std::string_view bytes, char digit) {
    auto draft = here_.begin_object();
    EXPECT_TRUE(draft->write(as_bytes(bytes)));
    return uploads_.put_part(name, number, *std::move(draft),
                             std::string(32, digit));
  }
};

TEST_F(UploadsTest, JoinsItsParts) {
  const UploadName name{create("odd\nkey %"), "b", "odd\nkey %"};
  const std::string large(Uploads::kLeastPartBytes, 'x');
  ASSERT_TRUE(put_part(name, 1, large, '1'));
  ASSERT_TRUE(put_part(name, 7, "end", '7'));

  auto joined =
      uploads_.join(name, {{.number = 1, .etag = std::string(32, '1')},
                           {.number = 7, .etag = std::string(32, '7')}});

  ASSERT_TRUE(std::holds_alternative<JoinedParts>(joined))
      << std::get<S3Error>(joined).message;
  auto& whole = std::get<JoinedParts>(joined);
  EXPECT_EQ(whole.headers, "Content-Type: a\r\n");
  EXPECT_TRUE(here_.publish(std::move(whole.draft), path_of(name.key),
                            whole.etag, whole.headers));
  EXPECT_TRUE(uploads_.abort(name));
  EXPECT_EQ(text_of("odd\nkey %"), large + "end");
  EXPECT_EQ(files(), 1u);
}

TEST_F(UploadsTest, NamesAnUploadByIdBucketAndKey) {
  const std::string id = create("k");
  for (const UploadName& other :
       {UploadName{id, "b", "other"}, UploadName{id, "c", "k"},
        UploadName{std::string(32, '0'), "b", "k"},
        UploadName{"../../b", "b", "k"}, UploadName{"", "b", "k"}}) {
    const auto parts = uploads_.parts(other);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code(), ErrorCode::kNotFound);
    EXPECT_FALSE(put_part(other, 1, "x", '1'));
    EXPECT_FALSE(uploads_.abort(other));
  }
  EXPECT_TRUE(uploads_.parts({id, "b", "k"}));
  EXPECT_EQ(files(), 1u);
}

TEST_F(UploadsTest, APartMayBePutAgain) {
  const UploadName name{create("k"), "b", "k"};
  ASSERT_TRUE(put_part(name, 1, "old", '1'));
  ASSERT_TRUE(put_part(name, 1, "newer", '2'));

  const auto parts = uploads_.parts(name);

  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 1u);
  EXPECT_EQ((*parts)[0].size_bytes, 5u);
}

TEST_F(UploadsTest, OnlyTheLastPartMayBeSmall) {
  const UploadName name{create("k"), "b", "k"};
  ASSERT_TRUE(put_part(name, 1, "small", '1'));
  ASSERT_TRUE(put_part(name, 2, "end", '2'));

  const auto done =
      uploads_.join(name, {{.number = 1, .etag = std::string(32, '1')},
                           {.number = 2, .etag = std::string(32, '2')}});

  ASSERT_TRUE(std::holds_alternative<S3Error>(done));
  EXPECT_EQ(std::get<S3Error>(done).code, "EntityTooSmall");
  EXPECT_FALSE(fs::exists(root_ / "b/k"));
}

TEST_F(UploadsTest, TheEndOfOneDoesNotDisturbTheBeginningOfAnother) {
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([this, &failed] {
        for (int i = 0; i < 300; ++i) {
          const auto id = uploads_.create("b", "k", "");
          failed += !id || !uploads_.abort({*id, "b", "k"}) ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(failed, 0);
}

TEST_F(UploadsTest, ListsAndAborts) {
  const UploadName name{create("k"), "b", "k"};
  ASSERT_TRUE(put_part(name, 1, "x", '1'));
  ASSERT_EQ(uploads_.of_bucket("b")->size(), 1u);
  EXPECT_EQ(uploads_.of_bucket("c")->size(), 0u);

  ASSERT_TRUE(uploads_.abort(name));

  EXPECT_EQ(uploads_.of_bucket("b")->size(), 0u);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace leat
