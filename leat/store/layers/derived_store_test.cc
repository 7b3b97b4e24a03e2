#include "leat/store/layers/derived_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/runtime/log.h"
#include "leat/store/testing/fake_store.h"
#include "leat/store/testing/faulty_store.h"

namespace leat::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Gives the bytes in upper case behind the notes.
class Shouting final : public Derivation {
 public:
  Result<Buffer> derive(const DerivedKey& key, std::span<const std::byte> notes,
                        std::span<const std::byte> bytes) const override {
    if (key.part.starts_with("bad"))
      return Error(ErrorCode::kCorrupt, "nonsense");
    ++calls;
    std::string text(as_text(notes));
    for (const char c : as_text(bytes)) {
      text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    Buffer made(text.size());
    std::ranges::copy(as_bytes(text), made.data());
    return made;
  }
  mutable std::atomic<int> calls = 0;
};

/// Has one object, "words".
class Words final : public FakeStore {
 public:
  void read(ReadRequest request, std::stop_token /*stop*/,
            ReadDone done) override {
    constexpr std::string_view kWords = "onlyfewwordsn:";
    const auto part = kWords.substr(request.offset, request.into.size());
    std::ranges::copy(as_bytes(part), request.into.begin());
    done({});
  }
};

/// Made of [offset, offset + 4) of the object "words", and of "n:" at its end.
std::string key_of(std::uint64_t offset, std::string part = "0/x",
                   std::uint64_t size = 6) {
  return DerivedKey{.source = "words",
                    .offset = offset,
                    .length_bytes = 4,
                    .notes_offset = 12,
                    .notes_bytes = 2,
                    .size_bytes = size,
                    .part = std::move(part)}
      .text();
}

class DerivedStoreTest : public ::testing::Test {
 protected:
  void open(DerivedStoreOptions options = {}) {
    auto held = std::make_unique<HeldStore>(std::make_unique<Words>());
    held_ = held.get();
    store_ = std::make_unique<DerivedStore>(std::move(held), made_, options);
  }
  ~DerivedStoreTest() override { store_.reset(); }

  struct Answer {
    std::string bytes;
    std::optional<Result<void>> result;
  };
  /// Starts a read.
  std::shared_ptr<Answer> ask(const std::string& key, std::uint64_t offset,
                              std::size_t size, std::stop_token stop = {}) {
    auto answer = std::make_shared<Answer>();
    answer->bytes.resize(size);
    ++asked_;
    store_->read({.object = {.key = key},
                  .offset = offset,
                  .into = std::as_writable_bytes(std::span(answer->bytes))},
                 std::move(stop), [this, answer](Result<void> result) {
                   answer->result = std::move(result);
                   ++asked_done_;
                   asked_done_.notify_all();
                 });
    return answer;
  }
  /// Waits for all reads.
  void settle() {
    for (int done = asked_done_; done != asked_; done = asked_done_) {
      asked_done_.wait(done);
    }
  }
  void release(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) held_->release_one();
  }

  const std::shared_ptr<Shouting> made_ = std::make_shared<Shouting>();
  std::unique_ptr<DerivedStore> store_;
  HeldStore* held_ = nullptr;
  int asked_ = 0;
  std::atomic<int> asked_done_ = 0;
};

TEST_F(DerivedStoreTest, NamesTellWhatIsMadeApart) {
  open();
  EXPECT_EQ(store_->url_of(key_of(0)), store_->url_of(key_of(4)));

  EXPECT_NE(store_->name_of(key_of(0)), store_->name_of(key_of(4)));
  EXPECT_NE(store_->name_of(key_of(0)), store_->name_of(key_of(0, "0/y")));
  EXPECT_EQ(store_->name_of("words"), store_->url_of("words"));
}

TEST_F(DerivedStoreTest, ANameTellsTheVersionIfAllThatItIsMadeOfHasOne) {
  open();
  DerivedKey key{.source = "words", .length_bytes = 4, .size_bytes = 4};
  EXPECT_FALSE(store_->names_version(key.text()));
  key.etag = "1";
  EXPECT_TRUE(store_->names_version(key.text()));
  key.also = {{.source = "other", .etag = "", .offset = 0, .length_bytes = 4}};
  EXPECT_FALSE(store_->names_version(key.text()));
  key.also.front().etag = "2";
  EXPECT_TRUE(store_->names_version(key.text()));
  EXPECT_FALSE(store_->names_version("words"));
}

TEST_F(DerivedStoreTest, MakesOnceForAllThatAskMeanwhileAndAfter) {
  open();
  const auto first = ask(key_of(0), 0, 6);
  const auto second = ask(key_of(0), 3, 2);
  EXPECT_THAT(held_->held(), ElementsAre("words", "words"));  // Notes, bytes.
  release(2);
  settle();
  const auto third = ask(key_of(0), 5, 1);
  settle();

  EXPECT_EQ(first->bytes, "n:ONLY");
  EXPECT_EQ(second->bytes, "NL");
  EXPECT_EQ(third->bytes, "Y");
  EXPECT_EQ(made_->calls, 1);
  EXPECT_THAT(held_->held(), IsEmpty());
}

TEST_F(DerivedStoreTest, ReadsNotesOnceForAllPartsOfAnObject) {
  open();
  ask(key_of(0), 0, 6);
  release(2);
  settle();
  const auto next = ask(key_of(4), 0, 6);
  release(1);
  settle();

  EXPECT_EQ(next->bytes, "n:FEWW");
}

TEST_F(DerivedStoreTest, HoldsNoMoreThanItMayAndLetsTheOldestGo) {
  open({.most_bytes = 16});  // 6 that are there, and 4 + 6 on their way.
  const auto first = ask(key_of(0), 0, 6);
  const auto second = ask(key_of(4), 0, 6);
  EXPECT_EQ(held_->held().size(), 2u);  // The second waits for memory.
  release(2);
  held_->wait_for(1);
  release(1);
  settle();
  const auto third = ask(key_of(8), 0, 6);
  release(1);
  settle();
  EXPECT_EQ(store_->made(), 3u);

  const auto again = ask(key_of(8), 0, 6);  // Is there.
  EXPECT_EQ(again->bytes, "n:ORDS");
  const auto oldest = ask(key_of(0), 0, 6);  // Was let go.
  release(1);
  settle();
  EXPECT_EQ(oldest->bytes, "n:ONLY");
  EXPECT_EQ(store_->made(), 4u);
}

TEST_F(DerivedStoreTest, ReadsLongOnesInParts) {
  open({.part_bytes = 2});
  const auto answer = ask(key_of(4), 0, 6);
  EXPECT_EQ(held_->held().size(), 3u);
  release(3);
  settle();
  EXPECT_EQ(answer->bytes, "n:FEWW");
}

TEST_F(DerivedStoreTest, PutsTheBytesOfSeveralRangesOneBehindTheOther) {
  open({.part_bytes = 2});
  const std::string key =
      DerivedKey{.source = "words",
                 .offset = 4,
                 .length_bytes = 3,
                 .size_bytes = 8,
                 .also = {{.offset = 0, .length_bytes = 4},
                          {.source = "words", .offset = 11, .length_bytes = 1}}}
          .text();
  const auto answer = ask(key, 0, 8);
  EXPECT_EQ(held_->held().size(), 4u);  // One of four bytes is read in two.
  release(4);
  settle();
  EXPECT_EQ(answer->bytes, "FEWONLYS");
}

TEST_F(DerivedStoreTest, StopsWhoWaitsAndAnswersTheOthers) {
  open();
  std::stop_source stop;
  const auto stopped = ask(key_of(0), 0, 6, stop.get_token());
  const auto other = ask(key_of(0), 0, 6);
  stop.request_stop();
  ASSERT_TRUE(stopped->result);
  EXPECT_EQ(stopped->result->error().code(), ErrorCode::kCancelled);
  release(2);
  settle();
  EXPECT_EQ(other->bytes, "n:ONLY");
}

TEST_F(DerivedStoreTest, WhatNobodyWaitsForAnyMoreIsNotBegun) {
  open({.most_bytes = 10});
  std::stop_source stop;
  ask(key_of(0), 0, 6);
  ask(key_of(4), 0, 6, stop.get_token());
  stop.request_stop();
  release(2);
  settle();
  EXPECT_THAT(held_->held(), IsEmpty());
  const auto again = ask(key_of(4), 0, 6);
  release(1);
  settle();
  EXPECT_EQ(again->bytes, "n:FEWW");
}

TEST_F(DerivedStoreTest, SaysWhyAndTriesAgainWhenAskedAgain) {
  open();
  const auto failed = ask(key_of(0), 0, 6);
  held_->fail_one(Error(ErrorCode::kUnavailable, "gone fishing"));
  release(1);
  settle();
  EXPECT_EQ(failed->result->error().code(), ErrorCode::kUnavailable);

  const auto good = ask(key_of(0), 0, 6);
  release(2);
  settle();
  EXPECT_EQ(good->bytes, "n:ONLY");
}

TEST_F(DerivedStoreTest, RefusesWhatIsNotWhatItsNameSays) {
  open();
  const auto bad = ask(key_of(0, "bad\nlong"), 0, 6);
  release(2);
  settle();
  const auto shorter = ask(key_of(4, "0/x", 7), 0, 7);
  release(2);  // The failed one kept no notes.
  settle();
  const auto outside = ask(key_of(0), 4, 3);
  const auto torn = ask("words#leat:made;1;2", 0, 1);
  settle();

  EXPECT_THAT(bad->result->error().message(), HasSubstr("bad: nonsense"));
  EXPECT_EQ(shorter->result->error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(shorter->result->error().message(), HasSubstr("index it again"));
  EXPECT_EQ(outside->result->error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(torn->result->error().code(), ErrorCode::kCorrupt);
}

std::vector<std::string>& logged() {
  static std::vector<std::string> lines;
  return lines;
}

TEST_F(DerivedStoreTest, SaysOnceThatTooFewFit) {
  logged().clear();
  set_log_sink([](LogLevel /*level*/, std::string_view message) {
    logged().emplace_back(message);
  });
  open({.most_bytes = 10});  // One at a time.
  for (int i = 0; i < 200; ++i) {
    ask(key_of(i % 2 * 4), 0, 6);
    release(i == 0 ? 2 : 1);  // The notes come with the first.
    settle();
    // A few times are no matter.
    ASSERT_TRUE(i >= 40 || logged().empty());
  }
  set_log_sink(nullptr);
  EXPECT_THAT(logged(), ElementsAre(HasSubstr("again and again")));
}

TEST_F(DerivedStoreTest, PassesOrdinaryReadsOn) {
  open();
  const auto answer = ask("words", 4, 3);
  release(1);
  settle();
  EXPECT_EQ(answer->bytes, "few");
}

TEST(DerivedKeyTest, SaysAllOfItselfInItsName) {
  const DerivedKey key{.source = "a/b;#c.parquet",
                       .etag = "\"5;d\xff\"",
                       .offset = 4,
                       .length_bytes = 77,
                       .notes_offset = 1000,
                       .notes_bytes = 9,
                       .size_bytes = 0,
                       .part = "3/im;age#leat:made;1;2;3;4;5;;61",
                       .also = {{"a/b;#.h5", "\xff;", 3, 5}, {"", "", 0, 9}}};
  const auto parsed = DerivedKey::parse(key.text());
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->source, key.source);
  EXPECT_EQ((*parsed)->text(), key.text());
  EXPECT_EQ((*parsed)->etag, key.etag);
  EXPECT_EQ((*parsed)->part, key.part);
  EXPECT_EQ((*parsed)->also, key.also);
  // As a joined store names the same.
  const auto joined = DerivedKey::parse("7/" + key.text());
  ASSERT_TRUE(joined && *joined);
  EXPECT_EQ((*joined)->source, "7/" + key.source);
  EXPECT_EQ((*joined)->also[0].source, "7/a/b;#.h5");
  EXPECT_EQ((*joined)->also[1].source, "");
  EXPECT_EQ((*parsed)->source_bytes(), 91u);
  EXPECT_TRUE(is_derived_key(key.text()));
  EXPECT_FALSE(is_derived_key("a/b.parquet"));
}

TEST(DerivedKeyTest, RefusesNumbersThatNoObjectHas) {
  for (const char* rest :
       {"", "4;5;6;7;8;", "4;0;6;7;8;;", "4;5;6;7;99999999999999999999;;",
        "4;5;6;7;400000000000000;;", "-1;5;6;7;8;;", "4;5;6;7;8;0;",
        "4;5;6;7;8;zz;", "4;5;6;7;8;;x", "4;5;6;7;8;;61;1",
        "4;5;6;7;8;;61;1;0;;0;;", "4;5;6;7;8;;61;1;2;;0;x;",
        "4;5;6;7;8;;61;1;2;;2;;", "4;5;6;7;8;;61;1;281474976710655;;0;;"}) {
    EXPECT_FALSE(DerivedKey::parse(std::string("a#leat:made;") + rest)) << rest;
  }
  EXPECT_FALSE(DerivedKey::parse("#leat:made;4;5;6;7;8;;"));
}

}  // namespace
}  // namespace leat::testing
