#include "leat/bucket/write_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <pugixml.hpp>

#include "leat/bucket/iso_date.h"
#include "leat/bucket/object_note.h"
#include "leat/bucket/s3_reply.h"

namespace leat {
namespace {

constexpr std::ptrdiff_t kMostDeleted = 1000;

/// The conditions on the object that is copied.
Preconditions source_conditions_of(const RequestHead& head) {
  return {.if_match = std::string(head.header("x-amz-copy-source-if-match")),
          .if_none_match =
              std::string(head.header("x-amz-copy-source-if-none-match")),
          .if_modified_since =
              std::string(head.header("x-amz-copy-source-if-modified-since")),
          .if_unmodified_since = std::string(
              head.header("x-amz-copy-source-if-unmodified-since"))};
}

/// A list of content codings without aws-chunked: that describes the transfer,
/// not the object.
std::string without_aws_chunked(std::string_view list) {
  std::string left;
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item.empty() || equal_in_any_case(item, "aws-chunked")) continue;
    if (!left.empty()) left += ", ";
    left += item;
  }
  return left;
}

/// Why the object cannot be removed; nullopt once there is none.
std::optional<S3Error> remove_one(BucketParts& parts,
                                  const WriteRequest& request) {
  const S3Target& target = request.target;
  const auto path = parts.folder.object_path(target.bucket, target.key);
  if (!path) {
    // A name that cannot be a key does not exist, which is what the client
    // asked for; unless it has conditions.
    return path.error().code() == ErrorCode::kInvalidArgument
               ? check_conditions(parts, request)
               : std::optional(write_failure(path.error()));
  }
  MutexLock lock(parts.writes.of(*path));
  if (auto error = check_conditions(parts, request)) return error;
  const auto gone = parts.folder.remove_object(target.bucket, target.key);
  if (!gone && gone.error().code() != ErrorCode::kInvalidArgument) {
    return write_failure(gone.error());
  }
  parts.objects.forget(*path);
  return std::nullopt;
}

}  // namespace

std::optional<S3Error> check_conditions(const BucketParts& parts,
                                        const WriteRequest& request) {
  const Preconditions& conditions = request.conditions;
  if (conditions.if_match.empty() && conditions.if_none_match.empty()) {
    return std::nullopt;
  }
  const auto path =
      parts.folder.object_path(request.target.bucket, request.target.key);
  if (!path) return write_failure(path.error());
  const auto state = object_state(*path);
  if (!state && state.error().code() != ErrorCode::kNotFound) {
    return write_failure(state.error());
  }
  if (!state && !conditions.if_match.empty()) {
    return s3_error(S3Code::kNoSuchKey);
  }
  return check_write(conditions, state ? &*state : nullptr) == Verdict::kFailed
             ? std::optional(s3_error(S3Code::kPreconditionFailed))
             : std::nullopt;
}

std::string kept_headers(const RequestHead& head) {
  constexpr std::array<std::string_view, 6> kKept{
      "Content-Type",     "Cache-Control", "Content-Disposition",
      "Content-Encoding", "Expires",       "Content-Language"};
  std::string lines;
  for (const std::string_view name : kKept) {
    std::string value(head.header(name));
    if (name == "Content-Encoding") value = without_aws_chunked(value);
    if (!value.empty()) lines += fmt::format("{}: {}\r\n", name, value);
  }
  constexpr std::string_view kMeta = "x-amz-meta-";
  for (const auto& [name, value] : head.headers) {
    std::string lower(name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    if (lower.starts_with(kMeta)) {
      lines += fmt::format("{}: {}\r\n", lower, value);
    }
  }
  return lines;
}

std::optional<S3Error> check_headers(std::string_view headers) {
  if (headers.size() <= kMostHeaderBytes) return std::nullopt;
  return s3_error(S3Code::kMetadataTooLarge);
}

Reply create_bucket_reply(const BucketParts& parts, const S3Target& target) {
  const auto path = parts.folder.bucket_path(target.bucket);
  if (!path) {
    return refused(path.error().code() == ErrorCode::kInvalidArgument
                       ? s3_error(S3Code::kInvalidBucketName)
                       : write_failure(path.error()),
                   target);
  }
  if (const auto made = parts.folder.create_bucket(target.bucket); !made) {
    return refused(made.error().code() == ErrorCode::kInvalidArgument
                       ? s3_error(S3Code::kBucketAlreadyOwnedByYou)
                       : write_failure(made.error()),
                   target);
  }
  Reply reply;
  reply.headers =
      fmt::format("Location: /{}\r\n", uri_encode(target.bucket, Slash::kKeep));
  return reply;
}

Reply delete_bucket_reply(const BucketParts& parts, const S3Target& target) {
  if (const auto error = check_bucket(parts, target.bucket)) {
    return refused(*error, target);
  }
  const auto gone = parts.folder.remove_bucket(target.bucket);
  if (gone) return empty_reply(204);
  return refused(gone.error().code() == ErrorCode::kInvalidArgument
                     ? s3_error(S3Code::kBucketNotEmpty)
                     : write_failure(gone.error()),
                 target);
}

std::variant<ObjectState, S3Error> publish_object(BucketParts& parts,
                                                  const WriteRequest& request,
                                                  DraftObject draft,
                                                  std::string etag,
                                                  std::string headers) {
  const S3Target& target = request.target;
  if (const auto error = check_headers(headers)) return *error;
  const auto path = parts.folder.object_path(target.bucket, target.key);
  if (!path) return write_failure(path.error());
  MutexLock lock(parts.writes.of(*path));
  // It may have gone since the request began.
  if (const auto error = check_bucket(parts, target.bucket)) return *error;
  if (const auto error = check_conditions(parts, request)) return *error;
  auto state = parts.folder.publish(std::move(draft), *path, std::move(etag),
                                    std::move(headers));
  if (state) {
    parts.objects.forget(*path);
    return *std::move(state);
  }
  if (state.error().code() == ErrorCode::kNotFound) {
    if (const auto error = check_bucket(parts, target.bucket)) return *error;
  }
  return write_failure(state.error());
}

Reply put_object_reply(BucketParts& parts, const WriteRequest& request,
                       RequestBody& body) {
  const S3Target& target = request.target;
  if (const auto error = body.finish()) return refused(*error, target);
  const auto done = publish_object(parts, request, body.take_draft(),
                                   body.md5_hex(), request.headers);
  if (const auto* error = std::get_if<S3Error>(&done)) {
    return refused(*error, target);
  }
  Reply reply;
  reply.headers =
      fmt::format("ETag: \"{}\"\r\n", std::get<ObjectState>(done).etag);
  return reply;
}

CopyRequest CopyRequest::of(const RequestHead& head, WriteRequest write) {
  return {.write = std::move(write),
          .source = std::string(head.header("x-amz-copy-source")),
          .source_conditions = source_conditions_of(head),
          .directive = std::string(head.header("x-amz-metadata-directive"))};
}

Reply copy_object_reply(BucketParts& parts, const CopyRequest& request) {
  const S3Target& target = request.write.target;
  std::string_view source = request.source;
  if (source.starts_with('/')) source.remove_prefix(1);
  const auto from = parse_target("/" + std::string(source));
  if (from->has("versionId")) {
    return refused(s3_error(S3Code::kNotImplemented), target);
  }
  const bool replaces = request.directive == "REPLACE";
  if (!replaces && !request.directive.empty() && request.directive != "COPY") {
    return refused(s3_error(S3Code::kInvalidArgument,
                            "x-amz-metadata-directive is neither COPY nor "
                            "REPLACE"),
                   target);
  }
  const auto from_path = parts.folder.object_path(from->bucket, from->key);
  const auto to_path = parts.folder.object_path(target.bucket, target.key);
  if (!to_path) return refused(write_failure(to_path.error()), target);
  if (const auto error = check_bucket(parts, target.bucket)) {
    return refused(*error, target);
  }
  const auto failed = [&](const Error& error) {
    return refused(read_failure(parts, from->bucket, error), target);
  };
  if (!from_path) return failed(from_path.error());
  const auto original = open_object(*from_path);
  if (!original) return failed(original.error());
  if (check_read(request.source_conditions, original->state) !=
      Verdict::kProceed) {
    return refused(s3_error(S3Code::kPreconditionFailed), target);
  }
  // Asked here too, so that nothing is copied in vain.
  if (const auto error = check_conditions(parts, request.write)) {
    return refused(*error, target);
  }
  auto draft = parts.folder.begin_object();
  if (!draft) return refused(write_failure(draft.error()), target);
  if (const auto copied = draft->append_file(*original->file); !copied) {
    return failed(copied.error());
  }
  const auto done = publish_object(
      parts, request.write, *std::move(draft), original->state.etag,
      replaces ? request.write.headers : original->state.headers);
  if (const auto* error = std::get_if<S3Error>(&done)) {
    return refused(*error, target);
  }
  const auto& state = std::get<ObjectState>(done);
  return xml_reply(
      fmt::format("<CopyObjectResult {}><LastModified>{}</LastModified>"
                  "<ETag>&quot;{}&quot;</ETag></CopyObjectResult>",
                  kS3Namespace, iso_date(state.modified_ns), state.etag));
}

Reply delete_object_reply(BucketParts& parts, const WriteRequest& request) {
  const S3Target& target = request.target;
  if (const auto error = check_bucket(parts, target.bucket)) {
    return refused(*error, target);
  }
  if (const auto error = remove_one(parts, request)) {
    return refused(*error, target);
  }
  return empty_reply(204);
}

Reply delete_objects_reply(BucketParts& parts, const S3Target& target,
                           const std::string& xml) {
  if (const auto error = check_bucket(parts, target.bucket)) {
    return refused(*error, target);
  }
  pugi::xml_document document;
  const auto parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.child("Delete");
  if (!parsed || !root) return refused(s3_error(S3Code::kMalformedXml), target);
  const auto objects = root.children("Object");
  if (std::distance(objects.begin(), objects.end()) > kMostDeleted) {
    return refused(s3_error(S3Code::kMalformedXml), target);
  }
  const bool is_quiet = std::string_view(root.child_value("Quiet")) == "true";
  std::string inside = fmt::format("<DeleteResult {}>", kS3Namespace);
  for (const pugi::xml_node object : objects) {
    const std::string key = object.child_value("Key");
    WriteRequest request;
    request.target = {.bucket = target.bucket, .key = key, .query = {}};
    request.conditions.if_match = object.child_value("ETag");
    if (const auto error = remove_one(parts, request)) {
      inside += fmt::format(
          "<Error><Key>{}</Key><Code>{}</Code><Message>{}</Message></Error>",
          xml_escape(key), error->code, xml_escape(error->message));
    } else if (!is_quiet) {
      inside +=
          fmt::format("<Deleted><Key>{}</Key></Deleted>", xml_escape(key));
    }
  }
  return xml_reply(inside + "</DeleteResult>");
}

}  // namespace leat
