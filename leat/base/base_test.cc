#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/error.h"
#include "leat/base/hash.h"
#include "leat/base/object_checksums.h"
#include "leat/base/result.h"
#include "leat/base/sanitized.h"
#include "leat/base/system_error.h"
#include "leat/base/text.h"
#include "leat/base/units.h"

namespace leat {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error(ErrorCode::kInvalidArgument, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  LEAT_TRY(const int once, half(n));
  LEAT_TRY(const int twice, half(once));
  return twice;
}

TEST(ResultTest, TryHandsOnTheValueOrTheError) {
  EXPECT_EQ(*quarter(8), 2);

  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code(), ErrorCode::kInvalidArgument);
}

TEST(ResultTest, HoldsWhatOnlyMoves) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(7);

  ASSERT_TRUE(made);
  EXPECT_EQ(**made, 7);
}

TEST(ErrorTest, ReadsFromTheOutsideIn) {
  const Error error = Error(ErrorCode::kUnavailable, "HTTP 503")
                          .while_doing("reading s3://b/k")
                          .while_doing("loading sample 81");

  EXPECT_EQ(error.message(), "loading sample 81: reading s3://b/k: HTTP 503");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
}

TEST(SystemErrorTest, SaysWhatFailedAndWhetherItMayPass) {
  const Error full = system_error(ENOSPC, "writing a part");
  EXPECT_EQ(full.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "writing a part: No space left on device");
  EXPECT_EQ(code_of_errno(ENOENT), ErrorCode::kNotFound);
  EXPECT_EQ(code_of_errno(EROFS), ErrorCode::kPermissionDenied);
  EXPECT_EQ(code_of_errno(EISDIR), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(retryable(code_of_errno(EIO)));
}

TEST(UnitsTest, ReadsSizesAsPeopleWriteThem) {
  EXPECT_EQ(*parse_bytes("64MiB"), 64 * kMiB);
  EXPECT_EQ(*parse_bytes("90MB"), 90'000'000u);
  EXPECT_EQ(*parse_bytes("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("0"), 0u);
  for (const char* bad : {"", "MiB", "-1", "1 parsec", "1e30TiB", "nan"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(UnitsTest, ReadsDurationsAsPeopleWriteThem) {
  EXPECT_EQ(*parse_duration("55ms"), Nanoseconds(55'000'000));
  EXPECT_EQ(*parse_duration("1.5s"), Nanoseconds(1'500'000'000));
  EXPECT_EQ(*parse_duration("0"), Nanoseconds(0));
  for (const char* bad : {"", "5", "ms", "-1s", "3 fortnights"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(UnitsTest, WritesThemShort) {
  EXPECT_EQ(format_bytes(64 * kMiB), "64 MiB");
  EXPECT_EQ(format_bytes(3 * kGiB / 2), "1.5 GiB");
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_duration(Nanoseconds(55'000'000)), "55 ms");
}

// Below and above the size from which the system is asked itself.
TEST(BufferTest, SmallAndLargeOnesAreWritableAndMove) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{3} << 20}) {
    Buffer buffer(size);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    std::ranges::fill(buffer.span(), std::byte{7});

    Buffer moved(std::move(buffer));
    EXPECT_EQ(moved.size(), size);
    EXPECT_EQ(moved.span().back(), std::byte{7});
    buffer = Buffer(2);
    buffer = std::move(moved);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().front(), std::byte{7});
  }
}

TEST(BufferTest, ALargeOneTakesThePagesOfOneThatWasFreed) {
#ifdef LEAT_IS_SANITIZED
  GTEST_SKIP() << "nothing is reused under a sanitizer";
#endif
  Buffer::give_back_kept();
  const std::byte* first = nullptr;
  {
    Buffer buffer((3 << 20) - 5);
    first = buffer.data();
    buffer.span().back() = std::byte{7};
  }
  Buffer other_size(5 << 20);
  Buffer again((3 << 20) - 9000);
  EXPECT_NE(other_size.data(), first);
  EXPECT_EQ(again.data(), first);
  Buffer beside((3 << 20) - 9000);
  EXPECT_NE(beside.data(), first);
}

TEST(BufferTest, NoMoreThan64MiBAreKept) {
#ifdef LEAT_IS_SANITIZED
  GTEST_SKIP() << "nothing is kept under a sanitizer";
#endif
  Buffer::give_back_kept();
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    std::size_t all = 0;
    std::size_t pages = 0;
    statm >> all >> pages;
    return pages * 4096;
  };
  const std::size_t before = resident();
  {
    std::vector<Buffer> many;
    for (int i = 0; i < 40; ++i) {
      many.emplace_back(8 << 20);
      std::ranges::fill(many.back().span(), std::byte{1});
    }
  }
  const std::size_t kept = resident() - before;
  EXPECT_LE(kept, (64u << 20) + (4u << 20));
  EXPECT_GE(kept, 60u << 20);
  Buffer::give_back_kept();
  EXPECT_LE(resident() - before, 4u << 20);
}

TEST(BufferTest, AnEmptyOneHasNoBytes) {
  EXPECT_EQ(Buffer().data(), nullptr);
  EXPECT_TRUE(Buffer(0).span().empty());
}

TEST(HashTest, Crc32cHasTheCheckValueOfItsStandard) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xe3069283u);
}

TEST(ObjectChecksumsTest, HaveTheCheckValuesOfTheirStandards) {
  EXPECT_EQ(crc64_nvme(as_bytes("123456789")), 0xae8b14860a799888u);
  EXPECT_EQ(crc32_gzip(as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32_gzip(as_bytes("6789"), crc32_gzip(as_bytes("12345"))),
            0xcbf43926u);
}

/// Long ones are computed in another way than short ones.
TEST(ObjectChecksumsTest, PiecesOfAnyLengthAreAsTheWhole) {
  std::vector<std::byte> bytes(70'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(mix64(i));
  }
  const std::span all(bytes);
  for (const std::size_t size :
       {0, 1, 7, 63, 64, 127, 128, 129, 191, 192, 193, 1000, 70'000}) {
    SCOPED_TRACE(size);
    std::uint64_t by_pieces = 0;
    for (std::size_t at = 0; at < size; at += 50) {
      by_pieces = crc64_nvme(
          all.subspan(at, std::min<std::size_t>(50, size - at)), by_pieces);
    }
    EXPECT_EQ(crc64_nvme(all.first(size)), by_pieces);
  }
}

TEST(HashTest, PiecesHashAsTheWhole) {
  Hasher128 hasher;
  hasher.update(as_bytes("never let an "));
  hasher.update(as_bytes("accelerator wait"));

  EXPECT_EQ(hasher.digest(),
            xxh3_128(as_bytes("never let an accelerator wait")));
}

TEST(HashTest, SumsCarry) {
  Hash128 sum{.high = 0, .low = ~0ULL};
  sum += Hash128{.high = 0, .low = 2};

  EXPECT_EQ(sum, (Hash128{.high = 1, .low = 1}));
  EXPECT_EQ(sum.hex(), "00000000000000010000000000000001");
}

TEST(TextTest, ANumberIsAllOfItsText) {
  EXPECT_EQ(number_from<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(number_from<int>("-7"), -7);
  EXPECT_EQ(number_from<std::uint64_t>("1f", 16), 31u);
  EXPECT_EQ(number_from<double>("0.5"), 0.5);
  for (const char* none : {"", " 7", "7 ", "7x", "+7", "-7", "0x7", "7.0",
                           "18446744073709551616"}) {
    EXPECT_EQ(number_from<std::uint64_t>(none), std::nullopt) << none;
  }
  EXPECT_EQ(number_from<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(number_from<double>("0.5s"), std::nullopt);
}

TEST(TextTest, OnlyLettersOfAsciiAreLowered) {
  EXPECT_EQ(lowered("Ab-Z[@`{\xc3\x84"), "ab-z[@`{\xc3\x84");
}

}  // namespace
}  // namespace leat
