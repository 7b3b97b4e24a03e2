// The role of an EC2 instance, from its metadata service (IMDSv2).
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/s3/aws/aws_profile.h"

namespace leat {

/// How to reach the metadata service.
struct ImdsOptions {
  bool is_disabled = false;  ///< AWS_EC2_METADATA_DISABLED=true.
  std::string endpoint;      ///< Without a slash at its end.
  Nanoseconds timeout = std::chrono::seconds(1);  ///< For each try.
  int attempts = 1;
};

/// AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT (_MODE),
/// AWS_METADATA_SERVICE_TIMEOUT, AWS_METADATA_SERVICE_NUM_ATTEMPTS, else what
/// the profile says under the same names in lower case.
///
/// Errors:
///   kInvalidArgument  an endpoint that is not an http URL
Result<ImdsOptions> imds_options(const AwsProfile& profile, const Env& env);

/// The session that IMDSv2 asks for before anything else.
///
/// A container behind a bridge is one hop further away than the instance. The
/// service's reply to the request for a token may travel one hop unless the
/// instance allows more, so there it never arrives, while everything else is
/// answered. That is told apart from "no such service here", since the two are
/// fixed in different places.
///
/// Threads: one at a time.
class ImdsSession {
 public:
  enum class State {
    kOpen,
    kAbsent,    ///< Nobody answers: not an EC2 instance, or blocked.
    kTooFar,    ///< The hop limit is 1 and this is a container.
    kDisabled,  ///< Switched off, here or on the instance.
  };

  ImdsSession(ImdsOptions options, const CredentialTools& tools)
      : options_(std::move(options)), tools_(tools) {}

  /// Errors: kCancelled, and a service that answers with nonsense.
  Result<State> open(const std::stop_token& stop);

  /// Gets `path` ("meta-data/placement/region"). REQUIRES: open() said kOpen.
  Result<HttpReply> get(std::string_view path, const std::stop_token& stop);

  const std::string& token() const { return token_; }
  const ImdsOptions& options() const { return options_; }

 private:
  Result<HttpReply> send(const HttpRequest& request, int attempts,
                         const std::stop_token& stop);

  const ImdsOptions options_;
  const CredentialTools& tools_;
  std::string token_;
};

/// Explains why a session could not be opened and what to do about it.
std::string why_closed(ImdsSession::State state, const ImdsOptions& options);

/// `options` that are an error are reported once asked.
std::unique_ptr<CredentialProvider> instance_role(Result<ImdsOptions> options,
                                                  CredentialTools tools);

}  // namespace leat
