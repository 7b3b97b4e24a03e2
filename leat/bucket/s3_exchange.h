// One S3 request on its way through a bucket.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "leat/bucket/bucket_service.h"
#include "leat/bucket/request_body.h"
#include "leat/bucket/s3_request.h"
#include "leat/bucket/write_replies.h"

namespace leat {

/// Decides at the head how to treat the request (its operation, the client, the
/// fault that strikes), takes the body, and answers.
class S3Exchange final : public Exchange {
 public:
  S3Exchange(BucketService& service, const RequestHead& head);
  ~S3Exchange() override;

  bool wants_body() const override { return body_.has_value(); }
  void on_body(std::span<const std::byte> piece) override;
  void on_request(SendReply send) override;
  void on_sent(const SentReply& sent) override;

 private:
  /// The delay and faults of a reply. Owned, so that it can wait elsewhere.
  struct Shape {
    Nanoseconds delay{0};
    Ending ending = Ending::kWhole;
    bool flips_a_bit = false;
    Reply apply(Reply reply) const;
  };
  using Answer = std::function<Reply(BucketParts&)>;

  void admit();
  void choose_fault();
  void open_body(std::string_view payload_hash);
  WriteRequest write_request() const;
  Reply refuse() const;
  Reply answer_now();
  /// Null if answer_now() is to answer.
  Answer slow_answer();

  BucketService& service_;
  const RequestHead& head_;
  S3Target target_;
  Operation operation_ = Operation::kMethodNotAllowed;
  RequestKind kind_ = RequestKind::kOther;
  std::optional<S3Error> refusal_;
  std::optional<RequestBody> body_;
  Shape shape_;
  std::uint64_t identity_ = 0;
};

}  // namespace leat
