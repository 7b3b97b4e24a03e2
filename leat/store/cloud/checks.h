// Checks of the reads and listings of every cloud.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// Errors:
///   kInvalidArgument  no key, an empty range or one past the end of any
///                     object, an ETag that no header can hold
Result<void> check_read(const ReadRequest& request);

/// Checks the order of a page of a listing.
///
/// Errors:
///   kCorrupt  a key or folder is empty, lies outside `prefix`, or does not
///             come after the one before it
Result<void> check_page(const ListPage& page, std::string_view prefix);

/// "reading URL [offset, end)", for messages.
std::string reading(std::string_view url, const ReadRequest& request);

/// `place` and the key, which is escaped if it holds control characters.
std::string shown_url(std::string place, std::string_view key);

}  // namespace leat
