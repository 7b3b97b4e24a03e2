// When credentials end, on our own clock.
#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/store/cloud/provider.h"

namespace leat {

/// Parses a time such as "2024-02-29T12:00:00Z". It may have a fraction of a
/// second, which is dropped, and an offset such as +01:00. Nullopt if `text` is
/// not such a time.
std::optional<std::chrono::sys_seconds> parse_iso8601(std::string_view text);

/// The time on our clock at which credentials end, given `expiration`, their
/// end on the other side's clock.
///
/// `date` is the other side's Date header, empty if it has none. If it differs
/// from our time of day by more than a minute, we believe the Date header. So
/// with a wrong clock here, bad credentials do not look good, and good ones do
/// not look bad.
TimePoint expiry_on_our_clock(std::chrono::sys_seconds expiration,
                              std::string_view date,
                              const CredentialTools& tools);

/// How long before their end credentials are renewed and, later, no longer
/// used: a request must arrive while they are good.
struct RefreshTimes {
  Nanoseconds renew_before;
  Nanoseconds unusable_before;
};

/// For credentials that have `lifetime` left. They are renewed five minutes
/// before their end, or a quarter of `lifetime` before if that is less. They
/// are unusable from ten seconds before their end, or an eighth of `lifetime`
/// if that is less.
RefreshTimes refresh_times(Nanoseconds lifetime);

}  // namespace leat
