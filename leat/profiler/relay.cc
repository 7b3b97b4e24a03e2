#include "leat/profiler/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/base/mutex.h"
#include "leat/bucket/s3_error.h"
#include "leat/bucket/s3_reply.h"
#include "leat/bucket/s3_request.h"
#include "leat/serve/http_server.h"
#include "leat/store/http/http_client.h"
#include "leat/store/s3/request_maker.h"

namespace leat {
namespace {

constexpr std::size_t kMostReplyBytes = std::size_t{1} << 30;
constexpr std::size_t kMostBuckets = 64;

/// Headers of a request that change what is read.
constexpr std::array<std::string_view, 5> kAsked = {
    "range", "if-match", "if-none-match", "if-modified-since",
    "if-unmodified-since"};
/// Headers of a reply that clients look at.
constexpr std::array<std::string_view, 7> kAnswered = {
    "etag",          "content-range",       "content-type",    "last-modified",
    "accept-ranges", "x-amz-bucket-region", "x-amz-version-id"};

/// One bucket of the user's: its place, and the way to ask there.
struct Upstream {
  explicit Upstream(S3Settings settings)
      : credentials(keep_credentials(settings.credentials, settings.provider,
                                     settings.turn_path)),
        maker(std::move(settings), &system_now) {}
  const std::unique_ptr<RefreshingCredentials> credentials;
  RequestMaker maker;
};
using UpstreamRef = std::shared_ptr<Upstream>;

struct Question {
  std::string method;
  S3Target target;
  std::vector<std::string> headers;
  /// Equal for requests that get the same answer.
  std::string identity;
};

Reply failure(std::string_view why) {
  Reply reply;
  reply.status = 502;
  reply.headers = "Content-Type: text/plain\r\n";
  reply.body = why;
  return reply;
}

Reply reply_of(HttpReply from, bool is_head,
               const std::shared_ptr<const OpenFile>& nothing) {
  Reply reply;
  reply.status = from.status;
  for (const std::string_view name : kAnswered) {
    const std::string_view value = from.header(name);
    if (!value.empty()) reply.headers += fmt::format("{}: {}\r\n", name, value);
  }
  if (!is_head) {
    reply.body = std::move(from.body);
    return reply;
  }
  const std::string length(from.header("content-length"));
  reply.file =
      FileRange{.file = nothing,
                .size_bytes = std::strtoull(length.c_str(), nullptr, 10)};
  return reply;
}

/// The ETag of nothing, as of every write that is dropped.
constexpr std::string_view kEtag = "d41d8cd98f00b204e9800998ecf8427e";

/// Clients take from these answers what they send next, or take an empty one
/// for a failure.
std::string answer_to_write(Operation write, const S3Target& target) {
  const auto in_xml = [](std::string_view name, std::string_view inside) {
    return fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{0} {1}>{2}</{0}>", name,
        kS3Namespace, inside);
  };
  const std::string object =
      fmt::format("<Bucket>{}</Bucket><Key>{}</Key>", xml_escape(target.bucket),
                  xml_escape(target.key));
  const std::string etag = fmt::format("<ETag>&quot;{}&quot;</ETag>", kEtag);
  switch (write) {
    case Operation::kCreateUpload:
      return in_xml("InitiateMultipartUploadResult",
                    object + "<UploadId>leat-profile</UploadId>");
    case Operation::kCompleteUpload:
      return in_xml("CompleteMultipartUploadResult", object + etag);
    case Operation::kCopyObject:
      return in_xml(
          "CopyObjectResult",
          "<LastModified>1970-01-01T00:00:00.000Z</LastModified>" + etag);
    case Operation::kDeleteObjects:
      return in_xml("DeleteResult", "");
    default:
      return "";
  }
}

/// Bytes that were read before, up to a limit.
class Memory {
 public:
  explicit Memory(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Null if it was not kept.
  std::shared_ptr<const Reply> find(const std::string& identity) const {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(identity);
    return found == kept_.end() ? nullptr : found->second;
  }
  void keep(const std::string& identity, const Reply& reply) {
    if (reply.status != 200 && reply.status != 206 && reply.status != 404) {
      return;
    }
    const std::uint64_t bytes = identity.size() + reply.body.size() + 512;
    auto kept = std::make_shared<const Reply>(reply);
    const MutexLock lock(mutex_);
    if (held_bytes_ + bytes > most_bytes_) return;
    if (kept_.emplace(identity, std::move(kept)).second) held_bytes_ += bytes;
  }

 private:
  const std::uint64_t most_bytes_;
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Reply>> kept_
      LEAT_GUARDED_BY(mutex_);
  std::uint64_t held_bytes_ LEAT_GUARDED_BY(mutex_) = 0;
};

/// The traffic by the time at which it came.
class History {
 public:
  void add(TimePoint at, const RelayCounts& more) {
    const MutexLock lock(mutex_);
    RelayCounts& slot = slots_[at.time_since_epoch() / kSlot];
    slot.passed_on += more.passed_on;
    slot.lists += more.lists;
    slot.bytes += more.bytes;
    slot.until_first_byte += more.until_first_byte;
    slot.until_last_byte += more.until_last_byte;
  }
  RelayCounts between(TimePoint from, TimePoint until) const {
    const MutexLock lock(mutex_);
    RelayCounts sum;
    const auto end = slots_.upper_bound(until.time_since_epoch() / kSlot);
    for (auto slot = slots_.upper_bound(from.time_since_epoch() / kSlot);
         slot != end && slot != slots_.end(); ++slot) {
      sum.passed_on += slot->second.passed_on;
      sum.lists += slot->second.lists;
      sum.bytes += slot->second.bytes;
      sum.until_first_byte += slot->second.until_first_byte;
      sum.until_last_byte += slot->second.until_last_byte;
    }
    return sum;
  }
  void clear() {
    const MutexLock lock(mutex_);
    slots_.clear();
  }

 private:
  /// So the memory is bounded by the length of a run.
  static constexpr Nanoseconds kSlot = std::chrono::milliseconds(10);
  mutable Mutex mutex_;
  std::map<std::int64_t, RelayCounts> slots_ LEAT_GUARDED_BY(mutex_);
};

class RelayService final : public HttpService {
 public:
  RelayService(Env env, std::string token, std::uint64_t most_bytes)
      : path_("/" + std::move(token)),
        env_(std::move(env)),
        memory_(most_bytes),
        nothing_(std::make_shared<const OpenFile>(
            ::open("/dev/null", O_RDONLY | O_CLOEXEC))),
        http_(open_http_client({.max_in_flight = 512}, nullptr)) {}
  ~RelayService() override { stop_.request_stop(); }

  std::unique_ptr<Exchange> begin(const RequestHead& head) override;

  /// "/TOKEN": in front of every path that is answered.
  const std::string& path() const { return path_; }
  void answer(const Question& question, SendReply send);
  void acknowledge(Operation write, const S3Target& target,
                   const SendReply& send) {
    ++kept_away_;
    Reply reply;
    reply.body = answer_to_write(write, target);
    reply.headers = reply.body.empty()
                        ? fmt::format("ETag: \"{}\"\r\n", kEtag)
                        : std::string("Content-Type: application/xml\r\n");
    send(std::move(reply));
  }

  void set_mode(Relay::Mode mode) { mode_ = mode; }
  RelayCounts counts() const {
    return {.passed_on = passed_on_,
            .from_memory = from_memory_,
            .kept_away = kept_away_,
            .lists = lists_,
            .bytes = bytes_,
            .until_first_byte = Nanoseconds(until_first_byte_),
            .until_last_byte = Nanoseconds(until_last_byte_)};
  }
  RelayCounts counts_between(TimePoint from, TimePoint until) const {
    return history_.between(from, until);
  }
  void reset_counts() {
    history_.clear();
    passed_on_ = from_memory_ = kept_away_ = lists_ = bytes_ = 0;
    until_first_byte_ = until_last_byte_ = 0;
  }

 private:
  Result<UpstreamRef> upstream_of(const std::string& bucket);
  void count(const Question& question, const HttpReply& reply);
  void pass_on(const UpstreamRef& upstream, const Question& question,
               CredentialsRef who, bool has_moved, SendReply send);

  const std::string path_;
  const Env env_;
  std::stop_source stop_;
  std::atomic<Relay::Mode> mode_ = Relay::Mode::kCold;
  std::atomic<std::uint64_t> passed_on_ = 0;
  std::atomic<std::uint64_t> from_memory_ = 0;
  std::atomic<std::uint64_t> kept_away_ = 0;
  std::atomic<std::uint64_t> lists_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::int64_t> until_first_byte_ = 0;
  std::atomic<std::int64_t> until_last_byte_ = 0;
  History history_;
  Memory memory_;
  const std::shared_ptr<const OpenFile> nothing_;
  Mutex mutex_;
  std::map<std::string, UpstreamRef> upstreams_ LEAT_GUARDED_BY(mutex_);
  const std::unique_ptr<HttpClient> http_;  // Last: its callbacks use the rest.
};

class RelayExchange final : public Exchange {
 public:
  RelayExchange(RelayService& service, const RequestHead& head)
      : service_(service),
        is_read_(head.method == "GET" || head.method == "HEAD") {
    if (!head.target.starts_with(service.path() + "/")) return;
    auto target = parse_target(head.target.substr(service.path().size()));
    if (!target) return;
    operation_ = operation_of(head.method, *target,
                              head.header("x-amz-copy-source").empty()
                                  ? CopySource::kAbsent
                                  : CopySource::kPresent);
    Question question{
        .method = std::string(head.method),
        .target = *std::move(target),
        .headers = {},
        .identity = fmt::format("{} {}", head.method, head.target)};
    for (const std::string_view name : kAsked) {
      const std::string_view value = head.header(name);
      if (value.empty()) continue;
      question.headers.push_back(fmt::format("{}: {}", name, value));
      question.identity += "\n" + question.headers.back();
    }
    question_ = std::move(question);
  }

  void on_request(SendReply send) override {
    if (!question_) return send(failure("not a path of this relay"));
    if (!is_read_) {
      return service_.acknowledge(operation_, question_->target, send);
    }
    service_.answer(*question_, std::move(send));
  }

 private:
  RelayService& service_;
  const bool is_read_;
  Operation operation_ = Operation::kNotImplemented;
  std::optional<Question> question_;
};

std::unique_ptr<Exchange> RelayService::begin(const RequestHead& head) {
  return std::make_unique<RelayExchange>(*this, head);
}

Result<UpstreamRef> RelayService::upstream_of(const std::string& bucket) {
  const MutexLock lock(mutex_);
  if (const auto found = upstreams_.find(bucket); found != upstreams_.end()) {
    return found->second;
  }
  if (upstreams_.size() >= kMostBuckets) {
    return exhausted("too many buckets");
  }
  auto settings = resolve_s3_settings(bucket, {}, env_);
  if (!settings && settings.error().code() == ErrorCode::kPermissionDenied) {
    // The script may ask as nobody, and then so do we.
    settings = resolve_s3_settings(bucket, {.no_sign_request = true}, env_);
  }
  if (!settings) return std::move(settings).error();
  auto upstream = std::make_shared<Upstream>(*std::move(settings));
  upstreams_.emplace(bucket, upstream);
  return upstream;
}

void RelayService::answer(const Question& question, SendReply send) {
  if (mode_ == Relay::Mode::kWarm) {
    if (const auto kept = memory_.find(question.identity)) {
      ++from_memory_;
      return send(*kept);
    }
  }
  auto upstream = upstream_of(question.target.bucket);
  if (!upstream) return send(failure(upstream.error().message()));
  if ((*upstream)->credentials == nullptr) {
    return pass_on(*upstream, question, nullptr, false, std::move(send));
  }
  (*upstream)->credentials->when_ready(
      stop_.get_token(), [this, upstream = *upstream, question,
                          send = std::move(send)](Result<CredentialsRef> who) {
        if (!who) return send(failure(who.error().message()));
        pass_on(upstream, question, *std::move(who), false, send);
      });
}

void RelayService::pass_on(const UpstreamRef& upstream,
                           const Question& question, CredentialsRef who,
                           bool has_moved, SendReply send) {
  RequestMaker::Made made =
      upstream->maker.make({.method = question.method,
                            .key = question.target.key,
                            .query = question.target.query,
                            .headers = question.headers,
                            .body = {}},
                           who);
  made.http.most_body_bytes = kMostReplyBytes;
  http_->send(
      std::move(made.http), stop_.get_token(),
      [this, upstream, question, who = std::move(who), with = made.with,
       has_moved, send = std::move(send)](Result<HttpReply> reply) {
        if (!reply) return send(failure(reply.error().message()));
        const std::string_view region = reply->header("x-amz-bucket-region");
        if (!has_moved && reply->status >= 300 && reply->status < 500 &&
            !region.empty() && upstream->maker.adopt_region(with, region)) {
          return pass_on(upstream, question, who, true, send);
        }
        count(question, *reply);
        Reply answer =
            reply_of(*std::move(reply), question.method == "HEAD", nothing_);
        if (mode_ == Relay::Mode::kWarm)
          memory_.keep(question.identity, answer);
        send(std::move(answer));
      });
}

void RelayService::count(const Question& question, const HttpReply& reply) {
  RelayCounts one{.passed_on = 1, .bytes = reply.body.size()};
  if (question.method == "GET" && question.target.key.empty()) {
    one.lists = 1;
  } else if (question.method == "GET") {
    one.until_first_byte = reply.until_first_byte;
    one.until_last_byte = reply.until_last_byte;
  }
  passed_on_ += one.passed_on;
  lists_ += one.lists;
  bytes_ += one.bytes;
  until_first_byte_ += one.until_first_byte.count();
  until_last_byte_ += one.until_last_byte.count();
  history_.add(SteadyClock().now(), one);
}

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(),
                     random());
}

class OwnRelay final : public Relay {
 public:
  OwnRelay(const Env& env, std::uint64_t most_bytes)
      : service_(env, random_token(), most_bytes) {}
  Result<void> start() {
    LEAT_TRY(server_,
             open_http_server({.thread_name = "leat-relay"}, service_));
    return {};
  }
  std::string url() const override {
    return fmt::format("http://127.0.0.1:{}{}", server_->port(),
                       service_.path());
  }
  void set_mode(Mode mode) override { service_.set_mode(mode); }
  RelayCounts counts() const override { return service_.counts(); }
  RelayCounts counts_between(TimePoint from, TimePoint until) const override {
    return service_.counts_between(from, until);
  }
  void reset_counts() override { service_.reset_counts(); }

 private:
  RelayService service_;
  std::unique_ptr<HttpServer> server_;  // Last: it calls the service.
};

/// Threads that are started while it lives go before others, if that is
/// allowed: a read that waits for a core behind decoding threads would look
/// like one that waits for its store.
class StartsAhead {
 public:
  StartsAhead() : before_(::getpriority(PRIO_PROCESS, 0)) {
    (void)::setpriority(PRIO_PROCESS, 0, before_ - kAhead);
  }
  ~StartsAhead() { (void)::setpriority(PRIO_PROCESS, 0, before_); }
  StartsAhead(const StartsAhead&) = delete;
  StartsAhead& operator=(const StartsAhead&) = delete;

 private:
  static constexpr int kAhead = 10;
  const int before_;
};

}  // namespace

Result<std::unique_ptr<Relay>> open_relay(const Env& env,
                                          std::uint64_t most_bytes) {
  const StartsAhead ahead;
  auto relay = std::make_unique<OwnRelay>(env, most_bytes);
  LEAT_TRY_VOID(relay->start());
  return std::unique_ptr<Relay>(std::move(relay));
}

}  // namespace leat
