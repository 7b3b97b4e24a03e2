// Parses the reply of ListObjectsV2.
#pragma once
#include <string_view>

#include "leat/base/result.h"
#include "leat/store/store.h"

namespace leat {

/// Reads a <ListBucketResult> from untrusted bytes: bounded and checked.
///
/// A page whose keys are not in byte order is put in order, and says so.
///
/// Errors:
///   kCorrupt  no such XML or far too much of it, a size that is no number, a
///             key twice or outside `prefix`, more to come but no way to go on
Result<ListPage> parse_list_reply(std::string_view body,
                                  std::string_view prefix);

}  // namespace leat
