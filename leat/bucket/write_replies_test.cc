#include "leat/bucket/write_replies.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/bucket/object_note.h"

namespace leat {
namespace {

namespace fs = std::filesystem;

/// Requests to a server whose folder has one bucket, "b".
class WriteRepliesTest : public ::testing::Test {
 protected:
  ~WriteRepliesTest() override { fs::remove_all(root_); }

  static Folder fresh_folder(const fs::path& root) {
    fs::remove_all(root);
    fs::create_directories(root / "b");
    return *Folder::open(root.string());
  }
  static WriteRequest request_of(const std::string& key,
                                 Preconditions conditions = {},
                                 std::string headers = "") {
    return {{.bucket = "b", .key = key, .query = {}},
            std::move(conditions),
            std::move(headers)};
  }

  Reply put(const WriteRequest& request, std::string_view bytes) {
    auto draft = parts_.folder.begin_object();
    EXPECT_TRUE(draft);
    RequestBody body(RequestHead(), "", *std::move(draft));
    body.put(as_bytes(bytes));
    return put_object_reply(parts_, request, body);
  }
  std::string text_of(std::string_view key) const {
    std::ifstream file(root_ / "b" / key, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path root_{::testing::TempDir() + "write_replies_test"};
  BucketParts parts_{fresh_folder(root_), /*most_open=*/16,
                     /*most_names=*/10'000, /*its_checksums=*/false};
};

TEST_F(WriteRepliesTest, OfPutsAtOnceThatWantAFreshKeyOneSucceeds) {
  constexpr int kThreads = 4;
  constexpr int kKeys = 500;
  std::vector<std::array<int, kThreads>> statuses(kKeys);
  std::barrier all_at(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kKeys; ++i) {
          all_at.arrive_and_wait();
          statuses[std::size_t(i)][std::size_t(thread)] =
              put(request_of(std::to_string(i), {.if_none_match = "*"}),
                  std::to_string(thread))
                  .status;
        }
      });
    }
  }

  for (int i = 0; i < kKeys; ++i) {
    const auto& of_key = statuses[std::size_t(i)];
    const auto done = std::find(of_key.begin(), of_key.end(), 200);
    ASSERT_NE(done, of_key.end()) << i;
    EXPECT_EQ(std::count(of_key.begin(), of_key.end(), 200), 1) << i;
    EXPECT_EQ(std::count(of_key.begin(), of_key.end(), 412), kThreads - 1) << i;
    EXPECT_EQ(text_of(std::to_string(i)),
              std::to_string(done - of_key.begin()));
  }
}

TEST_F(WriteRepliesTest, APutWhoseBucketHasGoneDoesNotMakeItAnew) {
  for (const char* key : {"k", "a/b/k"}) {
    fs::create_directories(root_ / "b");
    auto draft = parts_.folder.begin_object();
    ASSERT_TRUE(draft);
    RequestBody body(RequestHead(), "", *std::move(draft));
    fs::remove(root_ / "b");

    const Reply reply = put_object_reply(parts_, request_of(key), body);

    EXPECT_EQ(reply.status, 404) << key;
    EXPECT_NE(reply.body.find("NoSuchBucket"), std::string::npos) << reply.body;
    EXPECT_FALSE(fs::exists(root_ / "b")) << key;
  }
}

TEST_F(WriteRepliesTest, AnObjectThatHasGoneIsNotHeldOpen) {
  const auto opened = [this] {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code unreadable;
      const std::string file = fs::read_symlink(entry, unreadable).string();
      count += file.starts_with(fs::canonical(root_ / "b").string()) ? 1 : 0;
    }
    return count;
  };
  const auto put_and_get = [this](const std::string& key) {
    ASSERT_EQ(put(request_of(key), "bytes").status, 200);
    ASSERT_TRUE(parts_.objects.find((root_ / "b" / key).string()));
  };
  for (const char* key : {"deleted", "in bulk", "replaced"}) put_and_get(key);
  put_and_get("others'");
  ASSERT_EQ(opened(), 4u);

  EXPECT_EQ(delete_object_reply(parts_, request_of("deleted")).status, 204);
  EXPECT_EQ(opened(), 3u);
  EXPECT_EQ(
      delete_objects_reply(parts_, {.bucket = "b", .key = "", .query = {}},
                           "<Delete><Object><Key>in bulk</Key></Object>"
                           "</Delete>")
          .status,
      200);
  EXPECT_EQ(opened(), 2u);
  EXPECT_EQ(put(request_of("replaced"), "new").status, 200);
  EXPECT_EQ(opened(), 1u);
  fs::remove(root_ / "b/others'");
  EXPECT_FALSE(parts_.objects.find((root_ / "b/others'").string()));
  EXPECT_EQ(opened(), 0u);
}

TEST_F(WriteRepliesTest, ABulkDeleteOfTooManyKeysDeletesNone) {
  std::string objects;
  for (int i = 0; i < 1000; ++i) {
    std::ofstream(root_ / "b" / std::to_string(i)).put('x');
    objects += "<Object><Key>" + std::to_string(i) + "</Key></Object>";
  }
  const S3Target bucket{.bucket = "b", .key = "", .query = {}};
  const auto left = [this] {
    return std::distance(fs::directory_iterator(root_ / "b"),
                         fs::directory_iterator());
  };

  const std::string too_many = "<Object><Key>k</Key></Object>";
  const Reply refusal = delete_objects_reply(
      parts_, bucket, "<Delete>" + objects + too_many + "</Delete>");
  EXPECT_EQ(refusal.status, 400);
  EXPECT_EQ(left(), 1000);

  const Reply done =
      delete_objects_reply(parts_, bucket, "<Delete>" + objects + "</Delete>");
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(left(), 0);
}

TEST_F(WriteRepliesTest, ADeleteKeepsToItsConditions) {
  ASSERT_EQ(put(request_of("k"), "bytes").status, 200);
  const std::string etag = object_state((root_ / "b/k").string())->etag;

  for (const Preconditions& conditions :
       {Preconditions{.if_match = "0123"},
        Preconditions{.if_none_match = "*"}}) {
    EXPECT_EQ(delete_object_reply(parts_, request_of("k", conditions)).status,
              412);
  }
  const S3Target bucket{.bucket = "b", .key = "", .query = {}};
  const std::string of_another =
      "<Delete><Object><Key>k</Key><ETag>0123</ETag></Object></Delete>";
  EXPECT_NE(delete_objects_reply(parts_, bucket, of_another)
                .body.find("PreconditionFailed"),
            std::string::npos);
  EXPECT_EQ(text_of("k"), "bytes");

  EXPECT_EQ(
      delete_object_reply(parts_, request_of("k", {.if_match = etag})).status,
      204);
  EXPECT_FALSE(fs::exists(root_ / "b/k"));
}

TEST_F(WriteRepliesTest, ACopyKeepsToTheConditionsOnItsSource) {
  ASSERT_EQ(put(request_of("k"), "bytes").status, 200);
  const std::string etag = object_state((root_ / "b/k").string())->etag;
  const auto copy_if = [this](const Preconditions& conditions) {
    return copy_object_reply(parts_, {.write = request_of("copy"),
                                      .source = "/b/k",
                                      .source_conditions = conditions,
                                      .directive = ""})
        .status;
  };

  EXPECT_EQ(copy_if({.if_match = "0123"}), 412);
  EXPECT_EQ(copy_if({.if_none_match = etag}), 412);
  EXPECT_EQ(copy_if({.if_modified_since = "Fri, 01 Jan 2100 00:00:00 GMT"}),
            412);
  EXPECT_EQ(copy_if({.if_unmodified_since = "Thu, 01 Jan 1970 00:00:00 GMT"}),
            412);
  EXPECT_FALSE(fs::exists(root_ / "b/copy"));

  EXPECT_EQ(copy_if({.if_match = etag}), 200);
  EXPECT_EQ(text_of("copy"), "bytes");
}

TEST_F(WriteRepliesTest, ReadsTheConditionsOnASourceFromTheHead) {
  RequestHead head;
  head.headers = {{"x-amz-copy-source", "b/k"},
                  {"x-amz-copy-source-if-match", "1"},
                  {"x-amz-copy-source-if-none-match", "2"},
                  {"x-amz-copy-source-if-modified-since", "3"},
                  {"x-amz-copy-source-if-unmodified-since", "4"},
                  {"x-amz-metadata-directive", "REPLACE"}};

  const CopyRequest request = CopyRequest::of(head, request_of("copy"));

  EXPECT_EQ(request.source, "b/k");
  EXPECT_EQ(request.source_conditions.if_match, "1");
  EXPECT_EQ(request.source_conditions.if_none_match, "2");
  EXPECT_EQ(request.source_conditions.if_modified_since, "3");
  EXPECT_EQ(request.source_conditions.if_unmodified_since, "4");
  EXPECT_EQ(request.directive, "REPLACE");
}

TEST_F(WriteRepliesTest, ACopyTakesTheHeadersThatItsDirectiveSays) {
  const std::string old = "Content-Type: a\r\nx-amz-meta-who: me\r\n";
  const std::string fresh = "Content-Type: b\r\n";
  ASSERT_EQ(put(request_of("k", {}, old), "bytes").status, 200);
  const auto headers_after = [&](const std::string& directive,
                                 const std::string& given) {
    const Reply reply =
        copy_object_reply(parts_, {.write = request_of("copy", {}, given),
                                   .source = "b/k",
                                   .source_conditions = {},
                                   .directive = directive});
    EXPECT_EQ(reply.status, 200);
    return object_state((root_ / "b/copy").string())->headers;
  };

  EXPECT_EQ(headers_after("", fresh), old);
  EXPECT_EQ(headers_after("COPY", fresh), old);
  EXPECT_EQ(headers_after("REPLACE", fresh), fresh);
  EXPECT_EQ(headers_after("REPLACE", ""), "");
  EXPECT_EQ(copy_object_reply(parts_, {.write = request_of("copy"),
                                       .source = "b/k",
                                       .source_conditions = {},
                                       .directive = "MERGE"})
                .status,
            400);
}

TEST_F(WriteRepliesTest, AContentCodingIsKeptWithoutThatOfTheTransfer) {
  const auto kept = [](std::string_view codings) {
    RequestHead head;
    head.headers = {{"Content-Encoding", codings}};
    return kept_headers(head);
  };

  EXPECT_EQ(kept("gzip"), "Content-Encoding: gzip\r\n");
  EXPECT_EQ(kept("gzip,aws-chunked"), "Content-Encoding: gzip\r\n");
  EXPECT_EQ(kept("aws-chunked, gzip"), "Content-Encoding: gzip\r\n");
  EXPECT_EQ(kept("gzip, aws-chunked, br"), "Content-Encoding: gzip, br\r\n");
  EXPECT_EQ(kept("aws-chunked"), "");
}

TEST_F(WriteRepliesTest, HeadersThatCannotBeKeptAreRefused) {
  const std::string large =
      "x-amz-meta-a: " + std::string(kMostHeaderBytes, 'x') + "\r\n";
  const std::string tabbed = "x-amz-meta-a: b\tc\r\n";

  const Reply put_reply = put(request_of("k", {}, large), "bytes");
  const Reply upload_reply =
      create_upload_reply(parts_, request_of("k", {}, large));

  for (const Reply& reply : {put_reply, upload_reply}) {
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(reply.body.find("MetadataTooLarge"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(root_ / "b/k"));
  EXPECT_EQ(put(request_of("k", {}, tabbed), "bytes").status, 200);
  EXPECT_EQ(object_state((root_ / "b/k").string())->headers, tabbed);
}

/// While it lives, no file can grow beyond `most_bytes`, as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t most_bytes)
      : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    rlimit small = before_;
    small.rlim_cur = most_bytes;
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(WriteRepliesTest, ABodyThatTheDiskHasNoRoomForGivesItsSpaceBack) {
  auto draft = parts_.folder.begin_object();
  ASSERT_TRUE(draft);
  RequestBody body(RequestHead(), "", *std::move(draft));
  {
    const SmallFiles full(64 << 10);
    const std::string bytes(128 << 10, 'x');
    body.put(as_bytes(bytes));
    body.put(as_bytes(bytes));  // The client sends on.
  }

  EXPECT_TRUE(fs::is_empty(root_ / ".leat/drafts"));
  EXPECT_EQ(put_object_reply(parts_, request_of("k"), body).status, 500);
  EXPECT_FALSE(fs::exists(root_ / "b/k"));
}

TEST_F(WriteRepliesTest, TheFolderAloneMakesNoBucketEither) {
  for (const char* key : {"k", "a/b/k"}) {
    auto draft = parts_.folder.begin_object();
    ASSERT_TRUE(draft);

    const auto state = parts_.folder.publish(
        *std::move(draft), (root_ / "gone" / key).string(), "0123", "");

    ASSERT_FALSE(state) << key;
    EXPECT_EQ(state.error().code(), ErrorCode::kNotFound);
    EXPECT_FALSE(fs::exists(root_ / "gone"));
  }
}

}  // namespace
}  // namespace leat
