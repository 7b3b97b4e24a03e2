// One request to a place that gives credentials.
#pragma once
#include <cstddef>
#include <stop_token>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/base/result.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// More than any reply that holds credentials has.
inline constexpr std::size_t kMostReplyBytes = 64 << 10;

enum class Proxy {
  kFromEnvironment,
  kNone,  ///< For addresses that only this machine can reach.
};

/// Sends `request` and waits for the whole reply, at most `timeout`.
///
/// Errors: as HttpClient::send; kDeadlineExceeded after `timeout`
Result<HttpReply> ask(const CredentialTools& tools, HttpRequest request,
                      Nanoseconds timeout, Proxy proxy,
                      const std::stop_token& stop);

/// The same, tried up to `attempts` times, a quarter of a second apart, as long
/// as it fails in a way that may pass: no reply, or HTTP 429 or 5xx.
Result<HttpReply> ask_repeatedly(const CredentialTools& tools,
                                 const HttpRequest& request,
                                 Nanoseconds timeout, Proxy proxy, int attempts,
                                 const std::stop_token& stop);

/// True if `text` may go into a header: ASCII, no blanks, no control
/// characters.
bool is_header_word(std::string_view text);

/// The error for a status that is not a success.
ErrorCode code_of_status(int status);

}  // namespace leat
