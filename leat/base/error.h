// Why something failed.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat {

/// Why something failed. A caller chooses what to do from the code alone;
/// the message is for people.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,   ///< The caller's fault; trying again cannot help.
  kNotFound,          ///< Nothing has that name.
  kPermissionDenied,  ///< Credentials missing, expired or too weak.
  kUnavailable,       ///< The other side failed and may recover: try again.
  kThrottled,         ///< The other side asks for less: try again, more slowly.
  kDeadlineExceeded,  ///< Took longer than it was allowed.
  kResourceExhausted,  ///< A budget of ours is full.
  kCorrupt,            ///< Bytes arrived and are wrong.
  kSkipped,            ///< A function of the user's passes over the sample.
  kCancelled,          ///< We asked it to stop, and it did.
  kInternal,           ///< A bug of ours.
};

/// True if the same request may succeed later, unchanged.
constexpr bool retryable(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kThrottled ||
         code == ErrorCode::kDeadlineExceeded;
}

/// The name users see, as in Python's `leat.NotFound`: without the k.
std::string_view to_string(ErrorCode code);

/// A failure and the path it took to reach you.
///
/// Each caller that passes an error upward adds what *it* was doing, so the
/// whole reads as one sentence from the outside in:
///
///     loading sample 81: reading s3://ds/7.tar [0, 65536): HTTP 503
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  /// Puts "`doing`: " in front of the message. The code is unchanged.
  Error&& while_doing(std::string_view doing) && {
    message_.insert(0, ": ").insert(0, doing);
    return std::move(*this);
  }

  /// Keeps an exception that a caller of ours threw. It is opaque to us.
  Error&& because_of(std::shared_ptr<const void> cause) && {
    cause_ = std::move(cause);
    return std::move(*this);
  }
  const std::shared_ptr<const void>& cause() const { return cause_; }

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  ErrorCode code_;
  std::string message_;
  std::shared_ptr<const void> cause_;
};

}  // namespace leat
