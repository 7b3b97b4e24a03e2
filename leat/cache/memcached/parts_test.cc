// The pure parts: pieces, placement, names, replies, slabs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/cache/memcached/piece.h"
#include "leat/cache/memcached/rendezvous.h"
#include "leat/cache/memcached/reply_parser.h"
#include "leat/cache/memcached/server_name.h"
#include "leat/cache/memcached/slabs.h"

namespace leat {
namespace {

using ::testing::HasSubstr;

Hash128 part_key(std::uint64_t number) {
  return {.high = mix64(number), .low = mix64(~number)};
}

TEST(PieceTest, CutsLargeValuesIntoEqualPieces) {
  for (const std::uint64_t bytes : {1ULL, 128'000ULL, 128'001ULL, 1'000'003ULL,
                                    (1ULL << 30) - 1, 1ULL << 30}) {
    const ValueSplit split = split_value(bytes);

    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < split.pieces; ++i) {
      EXPECT_EQ(split.offset_of(i), sum);
      EXPECT_LE(split.bytes_of(i), kMostPieceBytes);
      EXPECT_LT(split.bytes_of(0) - split.bytes_of(i), split.pieces);
      sum += split.bytes_of(i);
    }
    EXPECT_EQ(sum, bytes);
  }
  EXPECT_EQ(split_value(128'000).pieces, 1u);
  EXPECT_EQ(split_value(128'001).pieces, 2u);
}

TEST(PieceTest, KnowsItsOwnBytesAndNoOthers) {
  const std::string text(200'000, 'x');
  const ValueSplit split = split_value(text.size());
  const auto first = as_bytes(text).first(split.bytes_of(0));
  PieceSeal seal(peer_key_of("a secret"));
  const PieceHeader header = seal.make_header(part_key(1), split, 0, first);

  EXPECT_TRUE(seal.is_piece(header, part_key(1), split, 0, first));
  EXPECT_FALSE(seal.is_piece(header, part_key(2), split, 0, first));
  EXPECT_FALSE(seal.is_piece(header, part_key(1), split, 1, first));
  EXPECT_FALSE(
      seal.is_piece(header, part_key(1), split_value(199'999), 0, first));
  for (std::size_t i = 0; i < kPieceHeaderBytes; ++i) {
    PieceHeader flipped = header;
    flipped[i] ^= std::byte{0x10};
    EXPECT_FALSE(seal.is_piece(flipped, part_key(1), split, 0, first)) << i;
  }
  std::string torn(as_text(first));
  torn.back() ^= 1;
  EXPECT_FALSE(seal.is_piece(header, part_key(1), split, 0, as_bytes(torn)));
}

TEST(PieceTest, IsOfItsSecretAlone) {
  const std::string text = "bytes";
  const ValueSplit split = split_value(text.size());
  const auto bytes = as_bytes(text);
  PieceSeal ours(peer_key_of("a secret"));

  for (const char* other : {"", "another secret", "a secret "}) {
    PieceSeal theirs(peer_key_of(other));
    EXPECT_FALSE(ours.is_piece(theirs.make_header(part_key(1), split, 0, bytes),
                               part_key(1), split, 0, bytes))
        << other;
  }
  PieceSeal same(peer_key_of("a secret"));
  EXPECT_TRUE(ours.is_piece(same.make_header(part_key(1), split, 0, bytes),
                            part_key(1), split, 0, bytes));
}

TEST(PieceTest, NamesAreWhatMemcachedTakes) {
  const std::string name = piece_name(part_key(7), 8191);

  EXPECT_LE(name.size(), 48u);
  EXPECT_EQ(name.find_first_of(" \r\n\t"), std::string::npos);
  EXPECT_NE(name, piece_name(part_key(7), 8190));
  EXPECT_NE(name, piece_name(part_key(8), 8191));
}

TEST(RendezvousTest, SharesAreEvenAndMoveOnlyWithTheirServer) {
  constexpr std::uint64_t kKeys = 30'000;
  const std::vector<std::string> three = {"a:1", "b:1", "c:1"};
  const std::vector<std::string> turned = {"c:1", "a:1", "b:1"};
  const std::vector<std::string> two = {"a:1", "c:1"};
  std::map<std::string, std::uint64_t> counts;

  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string& server = three[Rendezvous(three).server_of(part_key(i))];
    ++counts[server];
    EXPECT_EQ(server, turned[Rendezvous(turned).server_of(part_key(i))]);
    if (server == "b:1") continue;
    EXPECT_EQ(server, two[Rendezvous(two).server_of(part_key(i))]);
  }

  // Six standard deviations of a third of the keys.
  for (const auto& [server, count] : counts) {
    EXPECT_NEAR(static_cast<double>(count), kKeys / 3.0, 490) << server;
  }
}

TEST(ServerNameTest, ReadsHostsAndPorts) {
  EXPECT_EQ(parse_server("node-1.local:2100")->text(), "node-1.local:2100");
  EXPECT_EQ(parse_server("node1")->text(), "node1:11211");
  EXPECT_EQ(parse_server("10.0.0.7:1")->text(), "10.0.0.7:1");
  EXPECT_EQ(parse_server("[fe80::1%eth0]:7")->text(), "[fe80::1%eth0]:7");
  EXPECT_EQ(parse_server("[::1]")->host, "::1");
  for (const auto* text :
       {"", ":1", "a:", "a:0", "a:65536", "a:1x", "a b:1", "[::1", "[]:1",
        "::1", "a\r\nflush_all:1", "user@host:1"}) {
    const auto server = parse_server(text);
    ASSERT_FALSE(server) << text;
    EXPECT_EQ(server.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(server.error().message(), HasSubstr("host:port"));
  }
}

/// The parser's events for `text` given in portions of this many bytes.
std::string heard(const std::string& text, std::size_t portion) {
  using Kind = ReplyEvent::Kind;
  MemcachedReplyParser parser;
  std::string log;
  for (std::size_t at = 0; at < text.size(); at += portion) {
    auto input = as_bytes(std::string_view(text).substr(at, portion));
    while (true) {
      const ReplyEvent event = parser.next(input);
      if (event.kind == Kind::kMore) break;
      if (event.kind == Kind::kBroken) return log + "broken";
      if (event.kind == Kind::kBytes) {
        log += as_text(event.payload);
        continue;
      }
      if (event.kind == Kind::kValue) {
        log += std::to_string(event.bytes) + (event.is_won ? "won(" : "(");
        continue;
      }
      static const std::map<Kind, std::string> name_of_kind = {
          {Kind::kValueEnd, ")"},   {Kind::kMiss, "miss"},
          {Kind::kDone, "done"},    {Kind::kNotStored, "not stored"},
          {Kind::kFailed, "bad"},   {Kind::kNoMemory, "full"},
          {Kind::kStatistic, "is"}, {Kind::kStatisticsEnd, "end"}};
      log += name_of_kind.at(event.kind) + std::string(event.text) + ";";
    }
  }
  return log;
}

TEST(ReplyParserTest, HearsTheSameInAnyPortions) {
  const std::string text =
      "VA 5 t9\r\nab\r\nc\r\nEN\r\nHD\r\nVA 0 W\r\n\r\nVA 0 Z\r\n\r\nNS\r\n"
      "SERVER_ERROR out of memory storing object\r\n"
      "SERVER_ERROR object too large for cache\r\nSTAT a 1\r\nEND\r\nNF\r\n";

  for (std::size_t portion = 1; portion <= text.size(); ++portion) {
    EXPECT_EQ(heard(text, portion),
              "5(ab\r\nc);miss;done;0won();0();not stored;"
              "fullout of memory storing object;"
              "badobject too large for cache;isa 1;end;miss;");
  }
}

TEST(ReplyParserTest, EndsWithWhatIsNotMemcacheds) {
  for (const std::string text :
       {"HTTP/1.1 400 Bad Request\r\n", "VA -1\r\n", "VA 99999999999\r\n",
        "VA 3\r\nabcd", "HD\n", "VA\r\n", "ERROR\r\n"}) {
    EXPECT_THAT(heard(text, 1), HasSubstr("broken")) << text;
  }
  EXPECT_EQ(heard(std::string(3000, 'A'), 100), "broken");
}

TEST(SlabStatisticsTest, TellsOfMemoryThatOtherSizesHold) {
  SlabStatistics slabs;
  for (const auto* line :
       {"1:chunk_size 1000", "1:free_chunks 40000", "2:chunk_size 100000",
        "2:free_chunks 0", "active_slabs 2", "total_malloced 64000000"}) {
    slabs.add(line);
  }

  EXPECT_EQ(slabs.free_elsewhere_bytes(90'000), 40'000'000u);
  EXPECT_EQ(slabs.free_elsewhere_bytes(900), 0u);
  EXPECT_EQ(slabs.slab_bytes(), 64'000'000u);
  EXPECT_FALSE(slabs.complaint("a:1", 900, 64'000'000));
  EXPECT_FALSE(slabs.complaint("a:1", 90'000, 640'000'000));
  const auto complaint = slabs.complaint("a:1", 90'000, 64'000'000);
  ASSERT_TRUE(complaint);
  EXPECT_THAT(*complaint, HasSubstr("a:1"));
  EXPECT_THAT(*complaint, HasSubstr("If other data left them, restart it"));
  EXPECT_THAT(*complaint, HasSubstr("give it more memory"));
}

TEST(SlabStatisticsTest, PassesOverNonsense) {
  SlabStatistics slabs;
  for (const auto* line :
       {"", " ", ":", "x:chunk_size 1", "1:chunk_size", "1:chunk_size -5",
        "1:chunk_size 18446744073709551615", "1:free_chunks 9"}) {
    slabs.add(line);
  }

  EXPECT_EQ(slabs.free_elsewhere_bytes(1), 0u);
  slabs.add("2:chunk_size 18446744073709551614");
  EXPECT_EQ(slabs.free_elsewhere_bytes(1), ~std::uint64_t{0});  // Saturated.
}

}  // namespace
}  // namespace leat
