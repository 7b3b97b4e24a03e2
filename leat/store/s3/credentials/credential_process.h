// Credentials that a program prints: `credential_process`, and helpers of ours.
#pragma once
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"

namespace leat {

/// Runs `command` without a shell and reads the JSON that it prints, Version 1.
/// At most `tools.process_timeout` and 64 KiB.
///
/// Errors (which show the end of its stderr, with long words hidden, and
/// nothing of its output):
///   kPermissionDenied  it fails, or prints something else
///   kInvalidArgument, kResourceExhausted, kDeadlineExceeded, kCancelled
///                      as run_process()
Result<TimedCredentials> ask_process(const std::vector<std::string>& command,
                                     const CredentialTools& tools,
                                     const std::stop_token& stop);

}  // namespace leat
