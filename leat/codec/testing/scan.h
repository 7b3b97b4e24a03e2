// Scans a container that a test holds in memory.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/error.h"
#include "leat/base/result.h"
#include "leat/codec/member_scanner.h"

namespace leat::testing {

struct MemberScan {
  std::vector<Member> members;
  std::size_t feeds = 0;
  std::uint64_t bytes_read = 0;
};

/// Feeds the scanner what it wants of the container, to the end or an error.
inline Result<MemberScan> scan_all(MemberScanner& scanner,
                                   std::string_view container) {
  MemberScan scan;
  while (const auto want = scanner.wants()) {
    ++scan.feeds;
    scan.bytes_read += want->length;
    LEAT_TRY_VOID(scanner.feed(
        as_bytes(container).subspan(want->offset, want->length), scan.members));
  }
  return scan;
}

/// The error of a scan; fails the test if there is none.
inline Error error_of(Result<MemberScan> scanned) {
  EXPECT_FALSE(scanned);
  return scanned ? Error(ErrorCode::kInternal, "no error")
                 : std::move(scanned).error();
}

}  // namespace leat::testing
