// Answers to what an upload in parts asks; declared in write_replies.h.

#include <fmt/format.h>

#include <optional>
#include <pugixml.hpp>

#include "leat/base/text.h"
#include "leat/bucket/s3_reply.h"
#include "leat/bucket/write_replies.h"

namespace leat {
namespace {

UploadName name_of(const S3Target& target) {
  return {std::string(target.value("uploadId")), target.bucket, target.key};
}

S3Error upload_failure(const Error& error) {
  return error.code() == ErrorCode::kNotFound ? s3_error(S3Code::kNoSuchUpload)
                                              : write_failure(error);
}

std::optional<int> parse_part_number(std::string_view text) {
  const auto number = number_from<int>(text);
  if (!number || *number < 1 || *number > Uploads::kMostParts) return {};
  return number;
}

std::string_view without_quotes(std::string_view etag) {
  while (etag.starts_with('"')) etag.remove_prefix(1);
  while (etag.ends_with('"')) etag.remove_suffix(1);
  return etag;
}

/// The parts that the client wants joined.
std::variant<std::vector<UploadPart>, S3Error> parse_parts(
    const std::string& xml) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.child("CompleteMultipartUpload");
  if (!parsed || !root) return s3_error(S3Code::kMalformedXml);
  std::vector<UploadPart> parts;
  for (const pugi::xml_node node : root.children("Part")) {
    const auto number = parse_part_number(node.child_value("PartNumber"));
    if (!number) return s3_error(S3Code::kInvalidPart);
    if (!parts.empty() && *number <= parts.back().number) {
      return s3_error(S3Code::kInvalidPartOrder);
    }
    UploadPart part;
    part.number = *number;
    part.etag = without_quotes(node.child_value("ETag"));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return s3_error(S3Code::kMalformedXml);
  return parts;
}

}  // namespace

Reply create_upload_reply(BucketParts& parts, const WriteRequest& request) {
  const S3Target& target = request.target;
  if (const auto error = check_bucket(parts, target.bucket)) {
    return refused(*error, target);
  }
  if (const auto error = check_headers(request.headers)) {
    return refused(*error, target);
  }
  const auto path = parts.folder.object_path(target.bucket, target.key);
  if (!path) return refused(write_failure(path.error()), target);
  const auto id =
      parts.uploads.create(target.bucket, target.key, request.headers);
  if (!id) return refused(write_failure(id.error()), target);
  return xml_reply(fmt::format(
      "<InitiateMultipartUploadResult {}><Bucket>{}</Bucket><Key>{}</Key>"
      "<UploadId>{}</UploadId></InitiateMultipartUploadResult>",
      kS3Namespace, xml_escape(target.bucket), xml_escape(target.key), *id));
}

Reply upload_part_reply(BucketParts& parts, const S3Target& target,
                        RequestBody& body) {
  if (const auto error = body.finish()) return refused(*error, target);
  const auto number = parse_part_number(target.value("partNumber"));
  if (!number) {
    return refused(s3_error(S3Code::kInvalidArgument,
                            "Part number must be an integer between 1 and "
                            "10000, inclusive"),
                   target);
  }
  const auto put = parts.uploads.put_part(name_of(target), *number,
                                          body.take_draft(), body.md5_hex());
  if (!put) return refused(upload_failure(put.error()), target);
  Reply reply;
  reply.headers = fmt::format("ETag: \"{}\"\r\n", body.md5_hex());
  return reply;
}

Reply complete_upload_reply(BucketParts& parts, const WriteRequest& request,
                            const std::string& xml) {
  const S3Target& target = request.target;
  const auto wanted = parse_parts(xml);
  if (const auto* error = std::get_if<S3Error>(&wanted)) {
    return refused(*error, target);
  }
  // Asked here too, so that nothing is joined in vain.
  if (const auto error = check_conditions(parts, request)) {
    return refused(*error, target);
  }
  auto joined = parts.uploads.join(name_of(target),
                                   std::get<std::vector<UploadPart>>(wanted));
  if (const auto* error = std::get_if<S3Error>(&joined)) {
    return refused(*error, target);
  }
  auto& whole = std::get<JoinedParts>(joined);
  const auto done =
      publish_object(parts, request, std::move(whole.draft),
                     std::move(whole.etag), std::move(whole.headers));
  if (const auto* error = std::get_if<S3Error>(&done)) {
    return refused(*error, target);
  }
  // The object is there: leftovers do no harm.
  (void)parts.uploads.abort(name_of(target));
  return xml_reply(fmt::format(
      "<CompleteMultipartUploadResult {}><Location>/{}/{}</Location>"
      "<Bucket>{}</Bucket><Key>{}</Key><ETag>&quot;{}&quot;</ETag>"
      "</CompleteMultipartUploadResult>",
      kS3Namespace, xml_escape(target.bucket), xml_escape(target.key),
      xml_escape(target.bucket), xml_escape(target.key),
      std::get<ObjectState>(done).etag));
}

Reply abort_upload_reply(BucketParts& parts, const S3Target& target) {
  const auto gone = parts.uploads.abort(name_of(target));
  if (!gone) return refused(upload_failure(gone.error()), target);
  Reply reply;
  reply.status = 204;
  return reply;
}

}  // namespace leat
