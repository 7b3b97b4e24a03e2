// Tests of the requests to a server and the handling of its answers, byte by
// byte.

#include "leat/cache/memcached/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Hash128 kKey{.high = 1, .low = 2};
constexpr std::string_view kName = "leat:00000000000000010000000000000002";

/// A pipeline, and the answers in their order.
struct World {
  PeerPipeline pipeline{std::chrono::seconds(60), PeerKey{}};
  std::vector<std::string> answers;

  PeerOperationRef ask(PeerOperation::Kind kind, std::span<std::byte> into,
                       const std::string& name) {
    auto operation = std::make_shared<PeerOperation>();
    operation->kind = kind;
    operation->key = kKey;
    operation->split = split_value(into.size());
    operation->into = into;
    operation->done = [this, name](const PeerOperationRef& answered) {
      static const std::vector<std::string> names = {
          "yes", "no", "coming", "full", "wrong", "unreachable"};
      answers.push_back(name + ": " +
                        names[static_cast<std::size_t>(answered->answer)]);
    };
    if (kind == PeerOperation::Kind::kInsert) {
      auto value = std::make_shared<Buffer>(into.size());
      std::memcpy(value->data(), into.data(), into.size());
      operation->value = value;
    }
    pipeline.ask(operation);
    return operation;
  }
  PeerOperationRef find(std::span<std::byte> into, const std::string& name) {
    return ask(PeerOperation::Kind::kFind, into, name);
  }
  std::string take_all() {
    std::string sent;
    for (auto bytes = pipeline.to_send(); !bytes.empty();
         bytes = pipeline.to_send()) {
      sent += as_text(bytes);
      pipeline.sent(bytes.size());
    }
    return sent;
  }
  bool receive(const std::string& text) {
    return pipeline.receive(as_bytes(text));
  }
};

std::string value_of_piece(std::string_view value, std::uint32_t piece,
                           const Hash128& key = kKey) {
  const ValueSplit split = split_value(value.size());
  const auto payload = as_bytes(value).subspan(
      static_cast<std::size_t>(split.offset_of(piece)), split.bytes_of(piece));
  const PieceHeader header =
      PieceSeal(PeerKey{}).make_header(key, split, piece, payload);
  return "VA " + std::to_string(kPieceHeaderBytes + payload.size()) + "\r\n" +
         std::string(as_text(header)) + std::string(as_text(payload)) + "\r\n";
}

TEST(PeerPipelineTest, FindsAValueAndRenewsIt) {
  World world;
  std::string into(5, ' ');
  world.find(std::as_writable_bytes(std::span(into)), "a");

  EXPECT_EQ(world.take_all(), "mg " + std::string(kName) + ":0 T60 v N10\r\n");
  ASSERT_TRUE(world.receive(value_of_piece("hello", 0)));

  EXPECT_THAT(world.answers, ElementsAre("a: yes"));
  EXPECT_EQ(into, "hello");
  EXPECT_FALSE(world.pipeline.is_owed());
}

TEST(PeerPipelineTest, JoinsPiecesOfAValueThatComesByteByByte) {
  World world;
  std::string value(300'000, ' ');
  for (std::size_t i = 0; i < value.size(); ++i) {
    value[i] = static_cast<char>(i * 31 >> 7);
  }
  std::string into(value.size(), ' ');
  world.find(std::as_writable_bytes(std::span(into)), "a");
  const std::string sent = world.take_all();
  // The first is stored last, and asked for last.
  EXPECT_THAT(sent, StartsWith("mg " + std::string(kName) + ":2 T60 v\r\n"));
  EXPECT_THAT(sent, HasSubstr(":0 T60 v N10\r\n"));

  const std::string reply = value_of_piece(value, 2) +
                            value_of_piece(value, 1) + value_of_piece(value, 0);
  for (const char c : reply) ASSERT_TRUE(world.receive({c}));

  EXPECT_THAT(world.answers, ElementsAre("a: yes"));
  EXPECT_TRUE(into == value);
}

TEST(PeerPipelineTest, TellsMissesComingAndWrongValuesApart) {
  World world;
  std::string into(5, ' ');
  const auto span = std::as_writable_bytes(std::span(into));
  for (const auto* name : {"miss", "won", "coming", "other", "short", "flip"}) {
    world.find(span, name);
  }
  world.take_all();
  std::string flipped = value_of_piece("hello", 0);
  flipped[flipped.size() - 3] ^= 1;

  ASSERT_TRUE(
      world.receive("EN\r\nVA 0 W\r\n\r\nVA 0 Z\r\n\r\n" +
                    value_of_piece("hello", 0, Hash128{.high = 1, .low = 3}) +
                    value_of_piece("hell", 0) + flipped));

  EXPECT_THAT(world.answers,
              ElementsAre("miss: no", "won: no", "coming: coming",
                          "other: wrong", "short: wrong", "flip: wrong"));
}

TEST(PeerPipelineTest, StoresAndHearsOfRefusals) {
  World world;
  std::string value = "hello";
  const auto span = std::as_writable_bytes(std::span(value));
  for (const auto* name : {"a", "b", "c"}) {
    world.ask(PeerOperation::Kind::kInsert, span, name);
  }
  const std::string sent = world.take_all();
  EXPECT_THAT(sent, StartsWith("ms " + std::string(kName) + ":0 41 T60\r\n"));
  EXPECT_THAT(sent, ::testing::EndsWith("hello\r\n"));

  ASSERT_TRUE(world.receive("HD\r\n"));
  EXPECT_FALSE(world.pipeline.take_refusal());
  ASSERT_TRUE(world.receive("SERVER_ERROR out of memory storing object\r\n"));
  EXPECT_EQ(world.pipeline.take_refusal(), 5 + kPieceHeaderBytes + 104u);
  EXPECT_FALSE(world.pipeline.take_refusal());
  ASSERT_TRUE(world.receive("SERVER_ERROR object too large for cache\r\n"));

  EXPECT_THAT(world.answers, ElementsAre("a: yes", "b: full", "c: no"));
}

TEST(PeerPipelineTest, RefusesAnswersThatNobodyAskedFor) {
  const std::vector<std::string> wrong = {"HD\r\n", "STAT a 1\r\n", "END\r\n",
                                          "hello\r\n"};
  for (const std::string& text : wrong) {
    World world;
    std::string into(5, ' ');
    EXPECT_FALSE(world.receive("EN\r\n"));  // Nothing was asked.
    world.find(std::as_writable_bytes(std::span(into)), "a");
    world.take_all();
    EXPECT_FALSE(world.receive(text)) << text;
    world.pipeline.give_up();
    EXPECT_THAT(world.answers, ElementsAre("a: unreachable"));
  }
}

TEST(PeerPipelineTest, GivingUpAnswersAllAndWritesNoMore) {
  World world;
  std::string into(5, ' ');
  const auto span = std::as_writable_bytes(std::span(into));
  world.find(span, "a");
  world.take_all();
  world.find(span, "b");
  const std::string reply = value_of_piece("hello", 0);
  ASSERT_TRUE(world.receive(reply.substr(0, 33)));

  world.pipeline.give_up();
  const std::string before = into;
  EXPECT_FALSE(world.receive(reply.substr(33)));

  EXPECT_THAT(world.answers, ElementsAre("a: unreachable", "b: unreachable"));
  EXPECT_EQ(into, before);
}

TEST(PeerPipelineTest, StatisticsGoBetweenCommands) {
  World world;
  std::string into(5, ' ');
  world.find(std::as_writable_bytes(std::span(into)), "a");
  std::string heard;
  world.take_all();
  world.pipeline.ask_statistics("stats slabs", [&](const auto& line) {
    heard += line ? std::string(*line) + ";" : "end";
  });
  EXPECT_EQ(world.take_all(), "stats slabs\r\n");

  ASSERT_TRUE(world.receive("EN\r\nSTAT 1:chunk_size 96\r\nEND\r\n"));

  EXPECT_EQ(heard, "1:chunk_size 96;end");
  EXPECT_THAT(world.answers, ElementsAre("a: no"));
}

}  // namespace
}  // namespace leat
