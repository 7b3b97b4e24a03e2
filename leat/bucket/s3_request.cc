#include "leat/bucket/s3_request.h"

#include <array>

#include "leat/store/s3/aws/sigv4_verify.h"

namespace leat {
namespace {

/// Parts of a bucket or object that we do not keep. Passing over such a query
/// would answer another question than the one that was asked.
constexpr std::array<std::string_view, 23> kUnknown{"accelerate",
                                                    "acl",
                                                    "analytics",
                                                    "attributes",
                                                    "cors",
                                                    "encryption",
                                                    "intelligent-tiering",
                                                    "inventory",
                                                    "legal-hold",
                                                    "lifecycle",
                                                    "logging",
                                                    "metrics",
                                                    "notification",
                                                    "object-lock",
                                                    "ownershipControls",
                                                    "policy",
                                                    "replication",
                                                    "restore",
                                                    "retention",
                                                    "select",
                                                    "tagging",
                                                    "versions",
                                                    "website"};

Operation of_bucket(std::string_view method, const S3Target& target) {
  if (method == "GET") {
    if (target.has("location")) return Operation::kBucketLocation;
    if (target.has("versioning")) return Operation::kBucketVersioning;
    if (target.has("uploads")) return Operation::kListUploads;
    return target.value("list-type") == "2" ? Operation::kListObjectsV2
                                            : Operation::kListObjects;
  }
  if (method == "HEAD") return Operation::kHeadBucket;
  if (method == "PUT") {
    return target.has("versioning") ? Operation::kNotImplemented
                                    : Operation::kCreateBucket;
  }
  if (method == "DELETE") return Operation::kDeleteBucket;
  if (method == "POST" && target.has("delete")) {
    return Operation::kDeleteObjects;
  }
  return Operation::kMethodNotAllowed;
}

Operation of_object(std::string_view method, const S3Target& target,
                    CopySource copy_source) {
  const bool copies = copy_source == CopySource::kPresent;
  if (method == "GET") {
    return target.has("uploadId") ? Operation::kListParts
                                  : Operation::kGetObject;
  }
  if (method == "HEAD") return Operation::kHeadObject;
  if (method == "PUT") {
    if (!target.has("uploadId")) {
      return copies ? Operation::kCopyObject : Operation::kPutObject;
    }
    return copies ? Operation::kNotImplemented : Operation::kUploadPart;
  }
  if (method == "DELETE") {
    return target.has("uploadId") ? Operation::kAbortUpload
                                  : Operation::kDeleteObject;
  }
  if (method == "POST" && target.has("uploads")) {
    return Operation::kCreateUpload;
  }
  if (method == "POST" && target.has("uploadId")) {
    return Operation::kCompleteUpload;
  }
  return Operation::kMethodNotAllowed;
}

}  // namespace

std::string_view S3Target::value(std::string_view name) const {
  for (const auto& [its_name, value] : query) {
    if (its_name == name) return value;
  }
  return {};
}

bool S3Target::has(std::string_view name) const {
  for (const auto& [its_name, value] : query) {
    if (its_name == name) return true;
  }
  return false;
}

std::optional<S3Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question).substr(1);
  S3Target parsed;
  if (question != std::string_view::npos) {
    parsed.query = parse_query(target.substr(question + 1));
  }
  const std::size_t slash = path.find('/');
  parsed.bucket = uri_decode(path.substr(0, slash));
  if (slash != std::string_view::npos) {
    parsed.key = uri_decode(path.substr(slash + 1));
  }
  return parsed;
}

Operation operation_of(std::string_view method, const S3Target& target,
                       CopySource copy_source) {
  for (const std::string_view name : kUnknown) {
    if (target.has(name)) return Operation::kNotImplemented;
  }
  // We keep neither versions nor the parts of a finished object. Sending the
  // current object instead would be wrong.
  if (target.has("versionId")) return Operation::kNotImplemented;
  if (target.has("partNumber") && !target.has("uploadId")) {
    return Operation::kNotImplemented;
  }
  if (!target.key.empty()) return of_object(method, target, copy_source);
  if (!target.bucket.empty()) return of_bucket(method, target);
  return method == "GET" ? Operation::kListBuckets
                         : Operation::kMethodNotAllowed;
}

}  // namespace leat
