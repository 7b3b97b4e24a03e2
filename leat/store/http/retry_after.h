// The Retry-After header: RFC 9110, section 10.2.3.
#pragma once
#include <chrono>
#include <optional>

#include "leat/base/clock.h"
#include "leat/store/http/http_client.h"

namespace leat {

/// Nobody waits longer because a service says so.
inline constexpr std::chrono::seconds kMostRetryAfter{60};

/// The wait that a 429 or 503 asks for, as seconds or as a date; at most
/// kMostRetryAfter. A date counts from that of the reply: the server's clock
/// and ours may differ. `now` stands for it in a reply without one.
///
/// Nullopt: another status, no such header, one that is neither, or a wait that
/// is over: nobody has to wait.
std::optional<Nanoseconds> retry_after(
    const HttpReply& reply,
    std::chrono::sys_seconds now = std::chrono::floor<std::chrono::seconds>(
        std::chrono::system_clock::now()));

}  // namespace leat
