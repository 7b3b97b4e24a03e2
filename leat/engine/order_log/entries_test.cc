#include "leat/engine/order_log/entries.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "leat/base/buffer.h"
#include "leat/base/hash.h"

namespace leat {
namespace {

Result<OrderLogEntry> parsed(std::string_view bytes) {
  const auto all = as_bytes(bytes);
  LEAT_TRY(const OrderLogFrame frame, parse_frame(all.first(kOrderLogFrame)));
  return parse_entry(frame, all.subspan(kOrderLogFrame));
}

std::string packed(const OrderLogEntry& entry) {
  std::string bytes;
  append_entry(entry, bytes);
  return bytes;
}

OrderLogHead some_head() {
  return {.rank = {.rank = 2, .world_size = 4},
          .data = "0123456789abcdef0123456789abcdef",
          .shuffle = "full",
          .shuffle_window = 64,
          .seed = ~std::uint64_t{0},
          .global_batch = 256,
          .tail = "drop",
          .samples = 1'000'000,
          .opened_at = 1'700'000'000'000'000'000};
}

/// Rows below `rows`, ascending.
std::vector<std::uint64_t> some_rows(std::uint64_t rows) {
  const auto drawn = *rc::gen::container<std::set<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(0, rows));
  return {drawn.begin(), drawn.end()};
}

RC_GTEST_PROP(OrderLogEntries, AnyBatchComesBack, ()) {
  const auto ids =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::oneOf(rc::gen::inRange<std::uint64_t>(0, 100),
                         rc::gen::inRange<std::uint64_t>(1'000'000, 1'000'100),
                         rc::gen::arbitrary<std::uint64_t>())));
  OrderLogBatch batch{.starts = *rc::gen::arbitrary<bool>(),
                      .epoch = *rc::gen::arbitrary<std::uint64_t>(),
                      .from = *rc::gen::inRange<std::uint64_t>(0, 1ULL << 60)};
  batch.to = batch.from + *rc::gen::inRange<std::uint64_t>(1, 1ULL << 60);
  for (const std::uint64_t id : ids) batch.ids.push_back({id});
  batch.padding = some_rows(ids.size());
  batch.substitutes = some_rows(ids.size());

  const Result<OrderLogEntry> again = parsed(packed(batch));

  RC_ASSERT(again.has_value());
  RC_ASSERT(std::get<OrderLogBatch>(*again) == batch);
}

// The CRC is made to fit, so that the parser sees the changed bytes.
RC_GTEST_PROP(OrderLogEntries, ADamagedPayloadIsAnEntryOrAnError, ()) {
  const auto entry = *rc::gen::element(
      OrderLogEntry(some_head()), OrderLogEntry(OrderLogEnd{.samples = 60}),
      OrderLogEntry(OrderLogBatch{.to = 9,
                                  .ids = {{5}, {900}, {17}, {18}},
                                  .padding = {1, 3},
                                  .substitutes = {0}}));
  std::string bytes = packed(entry).substr(kOrderLogFrame);
  for (int i = *rc::gen::inRange(1, 4); i > 0; --i) {
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] =
        *rc::gen::arbitrary<char>();
  }
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 3));
  const auto payload = as_bytes(bytes);

  const auto damaged =
      parse_entry({.length = static_cast<std::uint32_t>(payload.size()),
                   .crc = crc32c(payload)},
                  payload);

  if (damaged) RC_ASSERT(*parsed(packed(*damaged)) == *damaged);
  RC_TAG(damaged.has_value());
}

TEST(OrderLogEntries, AHeadAndAnEndComeBack) {
  const OrderLogEnd end{.epoch = 3, .at = 1ULL << 47, .samples = 0};

  EXPECT_EQ(std::get<OrderLogHead>(*parsed(packed(some_head()))), some_head());
  EXPECT_EQ(std::get<OrderLogEnd>(*parsed(packed(end))), end);
}

TEST(OrderLogEntries, AnyChangedByteIsAnError) {
  for (const OrderLogEntry& entry :
       {OrderLogEntry(some_head()),
        OrderLogEntry(OrderLogBatch{.to = 3, .ids = {{5}, {900}, {17}}}),
        OrderLogEntry(OrderLogEnd{.epoch = 1, .at = 60, .samples = 60})}) {
    const std::string whole = packed(entry);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (int change = 1; change < 256; ++change) {
        std::string bytes = whole;
        bytes[i] = static_cast<char>(bytes[i] ^ change);
        EXPECT_FALSE(parsed(bytes)) << "byte " << i << " by " << change;
      }
    }
  }
}

TEST(OrderLogEntries, RefusesALogOfANewerVersion) {
  std::string payload = packed(some_head()).substr(kOrderLogFrame);
  const std::string_view now = R"("leat_order_log":1)";
  payload.replace(payload.find(now), now.size(), R"("leat_order_log":2)");

  const auto entry =
      parse_entry({.length = static_cast<std::uint32_t>(payload.size()),
                   .crc = crc32c(as_bytes(payload))},
                  as_bytes(payload));

  ASSERT_FALSE(entry);
  EXPECT_NE(entry.error().message().find("version 2"), std::string::npos);
}

/// Bytes for each sample of a batch of so many.
double cost_of(std::vector<SampleId> ids) {
  const auto samples = static_cast<double>(ids.size());
  const std::string bytes = packed(OrderLogBatch{.epoch = 80,
                                                 .from = 900'000'000,
                                                 .to = 900'008'192,
                                                 .ids = std::move(ids)});
  return static_cast<double>(bytes.size()) / samples;
}

TEST(OrderLogEntries, CostAtMostFourBytesASample) {
  std::mt19937_64 random(7);
  std::vector<SampleId> shuffled(256);
  for (SampleId& id : shuffled) id.value = random() % 1'000'000'000;
  std::vector<SampleId> in_order(256);
  std::uint64_t next = 700'000'000;
  for (SampleId& id : in_order) id.value = next++;

  EXPECT_LT(cost_of(shuffled), 4.0);
  EXPECT_LT(cost_of(in_order), 0.5);
}

}  // namespace
}  // namespace leat
