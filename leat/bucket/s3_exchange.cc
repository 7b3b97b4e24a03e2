#include "leat/bucket/s3_exchange.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "leat/bucket/list_replies.h"
#include "leat/bucket/read_replies.h"
#include "leat/bucket/s3_reply.h"
#include "leat/store/cloud/http_date.h"

namespace leat {
namespace {

RequestKind kind_of(Operation operation) {
  switch (operation) {
    case Operation::kGetObject:
      return RequestKind::kGet;
    case Operation::kHeadObject:
    case Operation::kHeadBucket:
      return RequestKind::kHead;
    case Operation::kListObjects:
    case Operation::kListObjectsV2:
      return RequestKind::kList;
    case Operation::kPutObject:
    case Operation::kCopyObject:
    case Operation::kUploadPart:
      return RequestKind::kPut;
    case Operation::kDeleteObject:
      return RequestKind::kDelete;
    default:
      return RequestKind::kOther;
  }
}

WallTime wall_time() {
  return std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
}

}  // namespace

S3Exchange::S3Exchange(BucketService& service, const RequestHead& head)
    : service_(service), head_(head) {
  auto target = parse_target(head.target);
  if (target) {
    target_ = *std::move(target);
    const bool copies = !head.header("x-amz-copy-source").empty();
    operation_ =
        operation_of(head.method, target_,
                     copies ? CopySource::kPresent : CopySource::kAbsent);
  } else {
    refusal_ = s3_error(S3Code::kInvalidUri);
  }
  kind_ = kind_of(operation_);
  service_.counters().begin(kind_);
  admit();
}

S3Exchange::~S3Exchange() { service_.counters().end(); }

void S3Exchange::admit() {
  shape_.delay = service_.next_delay();
  const auto admission = service_.authenticator().admit(head_, wall_time());
  if (!refusal_) refusal_ = admission.refusal;
  if (!refusal_ && operation_ == Operation::kMethodNotAllowed) {
    refusal_ = s3_error(S3Code::kMethodNotAllowed);
  }
  if (!refusal_ && operation_ == Operation::kNotImplemented) {
    refusal_ = s3_error(S3Code::kNotImplemented);
  }
  if (kind_ == RequestKind::kGet &&
      !service_.gets().admits(SteadyClock().now())) {
    refusal_ = s3_error(S3Code::kSlowDown);
    service_.counters().fault();
  } else {
    choose_fault();
  }
  if (!refusal_) open_body(admission.payload_hash);
}

void S3Exchange::choose_fault() {
  const Fault fault = service_.faults().draw(
      {.method = to_string(kind_),
       .bucket = target_.bucket,
       .key = kind_ == RequestKind::kList ? target_.value("prefix")
                                          : std::string_view(target_.key),
       .range = head_.header("range")});
  switch (fault.kind) {
    case Fault::Kind::kNone:
      return;
    case Fault::Kind::kStatus:
      refusal_ = s3_error_of_status(fault.status);
      break;
    case Fault::Kind::kReset:
      // Nothing is done for it either: a write that is reset did not happen.
      if (!refusal_) refusal_ = s3_error(S3Code::kInternalError);
      shape_.ending = Ending::kReset;
      break;
    case Fault::Kind::kTruncate:
      shape_.ending = Ending::kTruncate;
      break;
    case Fault::Kind::kStall:
      shape_.ending = Ending::kStall;
      break;
    case Fault::Kind::kSlow:
      shape_.delay += fault.delay;
      break;
    case Fault::Kind::kTrickle:
      shape_.ending = Ending::kTrickle;
      break;
    case Fault::Kind::kFlip:
      shape_.flips_a_bit = true;
      break;
  }
  service_.counters().fault();
}

void S3Exchange::open_body(std::string_view payload_hash) {
  const bool is_file = operation_ == Operation::kPutObject ||
                       operation_ == Operation::kUploadPart;
  const bool is_text = operation_ == Operation::kDeleteObjects ||
                       operation_ == Operation::kCompleteUpload;
  if (!is_file && !is_text) return;
  std::optional<DraftObject> draft;
  if (is_file) {
    BucketParts& parts = service_.parts();
    refusal_ = check_bucket(parts, target_.bucket);
    if (refusal_) return;
    const auto path = parts.folder.object_path(target_.bucket, target_.key);
    if (!path) {
      refusal_ = write_failure(path.error());
      return;
    }
    auto begun = parts.folder.begin_object();
    if (!begun) {
      refusal_ = write_failure(begun.error());
      return;
    }
    draft.emplace(*std::move(begun));
  }
  body_.emplace(head_, payload_hash, std::move(draft));
}

void S3Exchange::on_body(std::span<const std::byte> piece) {
  if (body_) body_->put(piece);
}

void S3Exchange::on_request(SendReply send) {
  if (refusal_) return send(shape_.apply(refuse()));
  Answer slow = slow_answer();
  if (!slow) return send(shape_.apply(answer_now()));
  // The connection may close before the answer is ready, and this exchange ends
  // with it. So the task uses only the service, and copies of all else.
  service_.run_elsewhere(
      [&service = service_, shape = shape_, slow = std::move(slow),
       send = std::move(send)] { send(shape.apply(slow(service.parts()))); });
}

Reply S3Exchange::refuse() const {
  Reply reply = error_reply(*refusal_, head_.target);
  const std::uint32_t wait = service_.retry_after_seconds();
  if (wait != 0 && (reply.status == 429 || reply.status == 503)) {
    reply.headers += fmt::format("Retry-After: {}\r\n", wait);
  }
  return reply;
}

void S3Exchange::on_sent(const SentReply& sent) {
  service_.counters().lateness(sent.lateness);
  if (kind_ != RequestKind::kGet) return;
  if (sent.is_whole && identity_ != 0) {
    service_.counters().served(identity_, sent.body_bytes);
  } else {
    service_.counters().cut(sent.body_bytes);
  }
}

Reply S3Exchange::Shape::apply(Reply reply) const {
  reply.delay = delay;
  reply.ending = ending;
  if (flips_a_bit && reply.file && reply.file->size_bytes > 0) {
    reply.flipped_byte = reply.file->size_bytes / 2;
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  reply.headers +=
      "Date: " +
      http_date(std::chrono::floor<std::chrono::seconds>(now).count()) +
      "\r\nServer: leat\r\n";
  return reply;
}

WriteRequest S3Exchange::write_request() const {
  return {target_, Preconditions::of(head_), kept_headers(head_)};
}

Reply S3Exchange::answer_now() {
  BucketParts& parts = service_.parts();
  switch (operation_) {
    case Operation::kGetObject:
    case Operation::kHeadObject: {
      ObjectReply answer = object_reply(parts, target_, head_);
      identity_ = answer.identity;
      return std::move(answer.reply);
    }
    case Operation::kPutObject:
      return put_object_reply(parts, write_request(), *body_);
    case Operation::kUploadPart:
      return upload_part_reply(parts, target_, *body_);
    case Operation::kListBuckets:
      return list_buckets_reply(parts);
    case Operation::kBucketLocation:
    case Operation::kBucketVersioning:
    case Operation::kHeadBucket:
      if (const auto error = check_bucket(parts, target_.bucket)) {
        return error_reply(*error, head_.target);
      }
      if (operation_ == Operation::kHeadBucket) return empty_reply(200);
      return xml_reply(operation_ == Operation::kBucketLocation
                           ? "<LocationConstraint/>"
                           : "<VersioningConfiguration/>");
    case Operation::kCreateBucket:
      return create_bucket_reply(parts, target_);
    case Operation::kDeleteBucket:
      return delete_bucket_reply(parts, target_);
    case Operation::kDeleteObject:
      return delete_object_reply(parts, write_request());
    case Operation::kCreateUpload:
      return create_upload_reply(parts, write_request());
    default:
      return error_reply(s3_error(S3Code::kNotImplemented), head_.target);
  }
}

S3Exchange::Answer S3Exchange::slow_answer() {
  switch (operation_) {
    case Operation::kListObjects:
    case Operation::kListObjectsV2:
      return [target = target_, operation = operation_](BucketParts& parts) {
        return list_objects_reply(parts, target, operation);
      };
    case Operation::kListUploads:
      return [target = target_](BucketParts& parts) {
        return list_uploads_reply(parts, target);
      };
    case Operation::kListParts:
      return [target = target_](BucketParts& parts) {
        return list_parts_reply(parts, target);
      };
    case Operation::kAbortUpload:
      return [target = target_](BucketParts& parts) {
        return abort_upload_reply(parts, target);
      };
    case Operation::kCopyObject:
      return
          [request = CopyRequest::of(head_, write_request())](
              BucketParts& parts) { return copy_object_reply(parts, request); };
    case Operation::kDeleteObjects:
    case Operation::kCompleteUpload: {
      if (auto error = body_->finish()) {
        return [error = *std::move(error), target = std::string(head_.target)](
                   BucketParts&) { return error_reply(error, target); };
      }
      const bool deletes = operation_ == Operation::kDeleteObjects;
      return [deletes, request = write_request(),
              xml = body_->text()](BucketParts& parts) {
        return deletes ? delete_objects_reply(parts, request.target, xml)
                       : complete_upload_reply(parts, request, xml);
      };
    }
    default:
      return nullptr;
  }
}

}  // namespace leat
