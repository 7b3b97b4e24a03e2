#include "leat/bucket/s3_request.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

Operation operation(std::string_view method, std::string_view target,
                    CopySource copy_source = CopySource::kAbsent) {
  return operation_of(method, *parse_target(target), copy_source);
}

TEST(S3TargetTest, SplitsAndDecodes) {
  const auto target = parse_target("/b/a%20b/%C3%A9+%2F?prefix=x%2Fy&empty");

  ASSERT_TRUE(target);
  EXPECT_EQ(target->bucket, "b");
  EXPECT_EQ(target->key, "a b/\xC3\xA9+/");
  EXPECT_EQ(target->value("prefix"), "x/y");
  EXPECT_TRUE(target->has("empty"));
  EXPECT_EQ(target->value("empty"), "");
  EXPECT_FALSE(target->has("absent"));
}

TEST(S3TargetTest, KnowsServiceAndBucket) {
  EXPECT_EQ(parse_target("/")->bucket, "");
  EXPECT_EQ(parse_target("/b")->bucket, "b");
  EXPECT_EQ(parse_target("/b?x")->bucket, "b");
  EXPECT_EQ(parse_target("/b/")->key, "");
  EXPECT_EQ(parse_target("/b//k")->key, "/k");
  EXPECT_FALSE(parse_target("http://host/b"));
  EXPECT_FALSE(parse_target("*"));
  EXPECT_FALSE(parse_target(""));
}

TEST(OperationTest, FollowsMethodAndQuery) {
  EXPECT_EQ(operation("GET", "/"), Operation::kListBuckets);
  EXPECT_EQ(operation("GET", "/b"), Operation::kListObjects);
  EXPECT_EQ(operation("GET", "/b?list-type=2"), Operation::kListObjectsV2);
  EXPECT_EQ(operation("GET", "/b?location"), Operation::kBucketLocation);
  EXPECT_EQ(operation("POST", "/b?delete"), Operation::kDeleteObjects);
  EXPECT_EQ(operation("GET", "/b/k"), Operation::kGetObject);
  EXPECT_EQ(operation("PUT", "/b/k"), Operation::kPutObject);
  EXPECT_EQ(operation("PUT", "/b/k", CopySource::kPresent),
            Operation::kCopyObject);
  EXPECT_EQ(operation("POST", "/b/k?uploads"), Operation::kCreateUpload);
  EXPECT_EQ(operation("PUT", "/b/k?partNumber=1&uploadId=u"),
            Operation::kUploadPart);
  EXPECT_EQ(operation("POST", "/b/k?uploadId=u"), Operation::kCompleteUpload);
  EXPECT_EQ(operation("DELETE", "/b/k?uploadId=u"), Operation::kAbortUpload);
  EXPECT_EQ(operation("DELETE", "/b/k"), Operation::kDeleteObject);
}

TEST(OperationTest, AnswersNoOtherQuestionThanAsked) {
  EXPECT_EQ(operation("GET", "/b/k?tagging"), Operation::kNotImplemented);
  EXPECT_EQ(operation("GET", "/b?versions"), Operation::kNotImplemented);
  EXPECT_EQ(operation("GET", "/b/k?versionId=1"), Operation::kNotImplemented);
  EXPECT_EQ(operation("GET", "/b/k?partNumber=2"), Operation::kNotImplemented);
  EXPECT_EQ(
      operation("PUT", "/b/k?partNumber=1&uploadId=u", CopySource::kPresent),
      Operation::kNotImplemented);
  EXPECT_EQ(operation("PATCH", "/b/k"), Operation::kMethodNotAllowed);
  EXPECT_EQ(operation("POST", "/b/k"), Operation::kMethodNotAllowed);
  EXPECT_EQ(operation("PUT", "/"), Operation::kMethodNotAllowed);
}

}  // namespace
}  // namespace leat
