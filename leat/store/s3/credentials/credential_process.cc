#include "leat/store/s3/credentials/credential_process.h"

#include <utility>

#include "leat/base/errors.h"
#include "leat/store/http/shown_text.h"
#include "leat/store/s3/credentials/json_reply.h"
#include "leat/store/s3/credentials/process.h"

namespace leat {
namespace {

/// The last line, in which programs describe their failure.
std::string last_line(std::string_view text) {
  while (!text.empty() &&
         (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  const std::size_t line = text.rfind('\n');
  if (line != std::string_view::npos) text.remove_prefix(line + 1);
  return shown_without_long_words(text);
}

/// A failure of the helper must not be hidden by the retries of a read.
Error failed(const Error& error) {
  const bool may_pass = error.code() == ErrorCode::kDeadlineExceeded ||
                        error.code() == ErrorCode::kCancelled;
  return Error(may_pass ? error.code() : ErrorCode::kPermissionDenied,
               error.message());
}

}  // namespace

Result<TimedCredentials> ask_process(const std::vector<std::string>& command,
                                     const CredentialTools& tools,
                                     const std::stop_token& stop) {
  const Result<ProcessOutput> ran =
      run_process(command, {.timeout = tools.process_timeout}, stop);
  if (!ran) return failed(ran.error());
  if (ran->exit_status != 0) {
    const std::string said = last_line(ran->errors);
    return denied("it ends with status {}{}{}", ran->exit_status,
                  said.empty() ? "" : ": ", said);
  }
  return parse_json_credentials(ran->output,
                                {.token_name = "SessionToken",
                                 .needs_expiration = false,
                                 .needs_version_1 = true},
                                "", {}, tools);
}

}  // namespace leat
