#include "leat/bucket/list_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <variant>

#include "leat/base/text.h"
#include "leat/bucket/iso_date.h"
#include "leat/bucket/key_walk.h"
#include "leat/bucket/request_body.h"
#include "leat/bucket/s3_reply.h"

namespace leat {
namespace {

constexpr std::size_t kMostKeys = 1000;
constexpr std::string_view kOwner =
    "<Owner><ID>leat</ID><DisplayName>leat</DisplayName></Owner>";

std::variant<std::size_t, S3Error> most_keys(const S3Target& target) {
  if (!target.has("max-keys")) return kMostKeys;
  const auto most = number_from<std::size_t>(target.value("max-keys"));
  if (!most) {
    return s3_error(S3Code::kInvalidArgument,
                    "Argument max-keys must be an integer from 0 on");
  }
  return std::min(*most, kMostKeys);
}

/// The start of the page, by the rules of either version.
std::variant<std::string, S3Error> start_of(const S3Target& target,
                                            Operation operation) {
  if (operation == Operation::kListObjects) {
    return std::string(target.value("marker"));
  }
  if (!target.has("continuation-token")) {
    return std::string(target.value("start-after"));
  }
  auto after = from_hex(target.value("continuation-token"));
  if (!after || after->empty()) {
    return s3_error(S3Code::kInvalidArgument,
                    "The continuation token provided is incorrect");
  }
  return *std::move(after);
}

void append_object(std::string& out, const FoundKey& found,
                   const ObjectState& state, const S3Target& target) {
  fmt::format_to(std::back_inserter(out),
                 "<Contents><Key>{}</Key><LastModified>{}</LastModified>"
                 "<ETag>&quot;{}&quot;</ETag><Size>{}</Size>"
                 "<StorageClass>STANDARD</StorageClass></Contents>",
                 shown(found.key, target), iso_date(state.modified_ns),
                 state.etag, state.size_bytes);
}

/// Contents and CommonPrefixes, and how many of both.
std::pair<std::string, std::size_t> show_page(const BucketParts& parts,
                                              const KeyPage& page,
                                              const S3Target& target) {
  std::string objects;
  std::string prefixes;
  std::size_t count = 0;
  std::string last_path;
  std::optional<Result<ObjectState>> state;
  for (const FoundKey& found : page.found) {
    if (found.is_prefix) {
      fmt::format_to(std::back_inserter(prefixes),
                     "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
                     shown(found.key, target));
    } else {
      const auto path = parts.folder.listed_path(target.bucket, found.key);
      // One file may stand for the whole page.
      if (path && (!state || *path != last_path)) {
        last_path = *path;
        state = object_state(*path);
      }
      if (!path || !*state) continue;  // Gone since the walk saw it.
      append_object(objects, found, **state, target);
    }
    ++count;
  }
  return {objects + prefixes, count};
}

std::string version_2_fields(const S3Target& target, const KeyPage& page,
                             std::size_t count) {
  std::string text = fmt::format("<KeyCount>{}</KeyCount>", count);
  if (target.has("start-after")) {
    text += fmt::format("<StartAfter>{}</StartAfter>",
                        shown(target.value("start-after"), target));
  }
  if (target.has("continuation-token")) {
    text += fmt::format("<ContinuationToken>{}</ContinuationToken>",
                        xml_escape(target.value("continuation-token")));
  }
  if (page.is_cut) {
    text += fmt::format("<NextContinuationToken>{}</NextContinuationToken>",
                        to_hex(page.found.back().key));
  }
  return text;
}

std::string version_1_fields(const S3Target& target, const KeyPage& page) {
  std::string text =
      fmt::format("<Marker>{}</Marker>", shown(target.value("marker"), target));
  if (page.is_cut && target.has("delimiter")) {
    text += fmt::format("<NextMarker>{}</NextMarker>",
                        shown(page.found.back().key, target));
  }
  return text;
}

}  // namespace

Reply list_buckets_reply(const BucketParts& parts) {
  const auto buckets = parts.folder.buckets();
  if (!buckets) return error_reply(write_failure(buckets.error()), "/");
  std::string inside = fmt::format("<ListAllMyBucketsResult {}>{}<Buckets>",
                                   kS3Namespace, kOwner);
  for (const Folder::Bucket& bucket : *buckets) {
    inside += fmt::format(
        "<Bucket><Name>{}</Name><CreationDate>{}</CreationDate></Bucket>",
        xml_escape(bucket.name), iso_date(bucket.created_ns));
  }
  return xml_reply(inside + "</Buckets></ListAllMyBucketsResult>");
}

Reply list_objects_reply(BucketParts& parts, const S3Target& target,
                         Operation operation) {
  if (auto error = check_bucket(parts, target.bucket)) {
    return refused(*std::move(error), target);
  }
  const auto most = most_keys(target);
  if (const auto* error = std::get_if<S3Error>(&most)) {
    return refused(*error, target);
  }
  auto after = start_of(target, operation);
  if (const auto* error = std::get_if<S3Error>(&after)) {
    return refused(*error, target);
  }
  const KeyQuery query{.prefix = std::string(target.value("prefix")),
                       .delimiter = std::string(target.value("delimiter")),
                       .after = std::get<std::string>(std::move(after)),
                       .most = std::get<std::size_t>(most)};
  const auto path = parts.folder.bucket_path(target.bucket);
  if (!path) return refused(write_failure(path.error()), target);
  const auto page = walk_keys(*path, query, parts.folders);
  if (!page) return refused(write_failure(page.error()), target);
  const auto [contents, count] = show_page(parts, *page, target);

  std::string inside = fmt::format(
      "<ListBucketResult {}><Name>{}</Name><Prefix>{}</Prefix>"
      "<MaxKeys>{}</MaxKeys><IsTruncated>{}</IsTruncated>",
      kS3Namespace, xml_escape(target.bucket), shown(query.prefix, target),
      query.most, page->is_cut);
  if (!query.delimiter.empty()) {
    inside += fmt::format("<Delimiter>{}</Delimiter>",
                          shown(query.delimiter, target));
  }
  if (target.value("encoding-type") == "url") {
    inside += "<EncodingType>url</EncodingType>";
  }
  inside += operation == Operation::kListObjectsV2
                ? version_2_fields(target, *page, count)
                : version_1_fields(target, *page);
  return xml_reply(inside + contents + "</ListBucketResult>");
}

Reply list_uploads_reply(const BucketParts& parts, const S3Target& target) {
  if (auto error = check_bucket(parts, target.bucket)) {
    return refused(*std::move(error), target);
  }
  const auto uploads = parts.uploads.of_bucket(target.bucket);
  if (!uploads) return refused(write_failure(uploads.error()), target);
  std::string inside = fmt::format(
      "<ListMultipartUploadsResult {}><Bucket>{}</Bucket>"
      "<IsTruncated>false</IsTruncated>",
      kS3Namespace, xml_escape(target.bucket));
  if (target.value("encoding-type") == "url") {
    inside += "<EncodingType>url</EncodingType>";
  }
  for (const UploadName& upload : *uploads) {
    if (!upload.key.starts_with(target.value("prefix"))) continue;
    inside +=
        fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload>",
                    shown(upload.key, target), upload.id);
  }
  return xml_reply(inside + "</ListMultipartUploadsResult>");
}

Reply list_parts_reply(const BucketParts& parts, const S3Target& target) {
  const auto found = parts.uploads.parts(
      {std::string(target.value("uploadId")), target.bucket, target.key});
  if (!found) {
    return refused(found.error().code() == ErrorCode::kNotFound
                       ? s3_error(S3Code::kNoSuchUpload)
                       : write_failure(found.error()),
                   target);
  }
  std::string inside = fmt::format(
      "<ListPartsResult {}><Bucket>{}</Bucket><Key>{}</Key>"
      "<UploadId>{}</UploadId><IsTruncated>false</IsTruncated>",
      kS3Namespace, xml_escape(target.bucket), shown(target.key, target),
      xml_escape(target.value("uploadId")));
  for (const UploadPart& part : *found) {
    inside += fmt::format(
        "<Part><PartNumber>{}</PartNumber><LastModified>{}</LastModified>"
        "<ETag>&quot;{}&quot;</ETag><Size>{}</Size></Part>",
        part.number, iso_date(part.modified_ns), part.etag, part.size_bytes);
  }
  return xml_reply(inside + "</ListPartsResult>");
}

}  // namespace leat
