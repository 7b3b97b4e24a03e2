// A loader that keeps pictures decoded delivers what one without a cache does,
// and neither asks for them nor decodes them again.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/base/clock.h"
#include "leat/base/units.h"
#include "leat/codec/testing/encode_image.h"
#include "leat/codec/testing/tar_builder.h"
#include "leat/pipeline/program/user_function.h"
#include "leat/pipeline/program/value.h"
#include "tests/loader/world.h"

namespace leat {
namespace {

constexpr std::uint64_t kPictures = 64;
/// The last is read after all was decoded, however far ahead a busy machine
/// reads.
constexpr std::size_t kDecodedEpochs = 6;
constexpr char kOps[] =
    "decode_image,random_resized_crop:24,random_horizontal_flip,"
    "normalize:imagenet";

/// Its sides are from `least` to twice that.
std::string jpeg(std::uint64_t i, std::uint32_t least = 30) {
  const auto side = [&](std::uint64_t of) {
    return least + static_cast<std::uint32_t>(mix64(i + of) % least);
  };
  return testing::encode_jpeg(testing::picture(side(0), side(1000)));
}

/// False if it takes longer than any machine should.
bool comes_true(const std::function<bool()>& condition) {
  const TimePoint begin = SteadyClock().now();
  while (!condition()) {
    if (SteadyClock().now() - begin > std::chrono::minutes(2)) return false;
    std::this_thread::yield();
  }
  return true;
}

class DecodedCacheTest : public ::testing::Test {
 protected:
  DecodedCacheTest() { make_pictures(kPictures, "pictures"); }

  void make_pictures(std::uint64_t count, const std::string& name,
                     std::uint32_t least_side = 30) const {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto folder = world_.root() / name / (i % 2 ? "a" : "b");
      std::filesystem::create_directories(folder);
      std::ofstream(folder / fmt::format("{:03}.jpg", i), std::ios::binary)
          << jpeg(i, least_side);
    }
  }

  static LoaderOptions with_ops(std::string_view ops = kOps) {
    LoaderOptions options = usual_options();
    options.ops = *parse_ops(ops);
    return options;
  }
  static LoaderOptions with_form(CacheForm form, std::string_view ops = kOps) {
    LoaderOptions options = with_ops(ops);
    options.cache = CacheOptions{.ram_bytes = 4 * kMiB, .form = form};
    return options;
  }
  std::string url() const { return (world_.root() / "pictures").string(); }

  std::vector<EpochStats> run(const LoaderOptions& options,
                              std::uint64_t epochs, std::string url = "") {
    auto loader = must(world_.load(url.empty() ? this->url() : url, options));
    for (std::uint64_t i = 0; i < epochs; ++i) (void)must(run_epoch(*loader));
    decisions_ = loader->decisions();
    const std::vector<EpochStats> stats = loader->stats();
    loader->close();
    for (const Metric gauge :
         {Metric::kCacheRamBytes, Metric::kRuntimeReservedBytes}) {
      EXPECT_EQ(loader->metrics()->value(gauge), 0);
    }
    bad_records_ = loader->metrics()->value(Metric::kCacheBadRecords);
    return stats;
  }

  static void expect_same(const std::vector<EpochStats>& a,
                          const std::vector<EpochStats>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].order_hash, b[i].order_hash) << i;
      EXPECT_EQ(a[i].content_hash, b[i].content_hash) << i;
    }
  }

  World world_;
  std::vector<Decision> decisions_;
  std::int64_t bad_records_ = 0;
};

TEST_F(DecodedCacheTest, SaysWhatASampleTakesAndAHitSaves) {
  for (const auto form : {CacheForm::kEncoded, CacheForm::kDecoded}) {
    LoaderOptions options = with_form(form);
    options.epochs = kDecodedEpochs;
    auto loader = must(world_.load(url(), options));
    for (std::uint64_t i = 0; i < kDecodedEpochs; ++i)
      (void)must(run_epoch(*loader));
    // Delivered samples are counted a little later.
    ASSERT_TRUE(comes_true(
        [&] { return loader->totals().tasks == kDecodedEpochs * kPictures; }));
    const LoaderTotals rates = loader->totals();
    const Metrics& metrics = *loader->metrics();
    const auto records = metrics.value(Metric::kPipelineRecords);
    if (form == CacheForm::kEncoded) {
      EXPECT_EQ(records, 0);
      EXPECT_EQ(rates.kept_bytes, 0);
      EXPECT_EQ(rates.saved_seconds, 0);
      EXPECT_EQ(rates.decoded_hits, 0);
      continue;
    }
    // More than the pictures themselves, and no more than all of their pixels.
    EXPECT_GE(records, static_cast<std::int64_t>(kPictures));
    EXPECT_GT(rates.kept_bytes, 30 * 30 * 3);
    EXPECT_LT(rates.kept_bytes, 60 * 60 * 3 + 4096);
    EXPECT_GE(rates.decoded_hits, kPictures);
    EXPECT_LT(rates.decoded_hits, kDecodedEpochs * kPictures);
    EXPECT_GT(rates.saved_seconds, 0);
    EXPECT_LT(rates.saved_seconds * static_cast<double>(records),
              1e-9 * static_cast<double>(rates.busy.count()));
  }
}

TEST_F(DecodedCacheTest, ChangesNothingThatIsDelivered) {
  for (const char* ops : {kOps, "decode_image,resize:40,random_crop:32",
                          "decode_image,resize:20/24,color_jitter:0.3"}) {
    const auto plain = run(with_ops(ops), kDecodedEpochs);
    const auto encoded =
        run(with_form(CacheForm::kEncoded, ops), kDecodedEpochs);
    const auto decoded =
        run(with_form(CacheForm::kDecoded, ops), kDecodedEpochs);

    expect_same(encoded, plain);
    expect_same(decoded, plain);
    EXPECT_EQ(decoded[0].misses, kPictures);
    EXPECT_EQ(decoded[0].decoded_hits, 0u);
    for (std::size_t epoch = 1; epoch < kDecodedEpochs; ++epoch) {
      EXPECT_EQ(encoded[epoch].ram_hits, kPictures);
      EXPECT_EQ(encoded[epoch].decoded_hits, 0u);
      EXPECT_EQ(decoded[epoch].ram_hits + decoded[epoch].misses, kPictures);
      EXPECT_EQ(decoded[epoch].stalls.total(), decoded[epoch].wait);
    }
    // An epoch begins to be read before all of the one before it is decoded.
    EXPECT_EQ(decoded.back().ram_hits, kPictures) << ops;
    EXPECT_EQ(decoded.back().decoded_hits, kPictures) << ops;
    EXPECT_EQ(decoded.back().gets, 0u);
    EXPECT_EQ(decoded.back().bytes_read, 0u);
  }
}

TEST_F(DecodedCacheTest, HalfTheRoomIsFewerHits) {
  LoaderOptions options = with_form(CacheForm::kDecoded,
                                    "decode_image,resize:40/40,random_crop:32");
  // A record of 40 x 40 x 3 bytes.
  constexpr std::uint64_t kRecord = 2 * 4096 + 128;
  options.cache->ram_bytes = kPictures / 2 * kRecord;
  const auto plain =
      run(with_ops("decode_image,resize:40/40,random_crop:32"), 4);

  const auto stats = run(options, 4);

  expect_same(stats, plain);
  for (std::size_t epoch : {1, 2, 3}) {
    // Their number depends on how far reading is ahead of decoding, with so
    // few.
    EXPECT_GT(stats[epoch].decoded_hits, 0u);
    EXPECT_LT(stats[epoch].decoded_hits, kPictures);
    EXPECT_EQ(stats[epoch].ram_hits + stats[epoch].misses, kPictures);
  }
}

TEST_F(DecodedCacheTest, OtherOpsFindNothingOfIt) {
  const auto on_disk = [&](std::string_view ops) {
    LoaderOptions options = with_ops(ops);
    options.cache = CacheOptions{.disk = (world_.root() / "cache").string(),
                                 .disk_limit_bytes = 16 * kMiB,
                                 .form = CacheForm::kDecoded};
    return options;
  };
  const char* const first = "decode_image,resize:40/40,random_crop:32";
  const char* const same = "decode_image,resize:40/40,random_crop:16";
  const char* const other = "decode_image,resize:41/41,random_crop:32";
  EXPECT_EQ(run(on_disk(first), kDecodedEpochs).back().decoded_hits, kPictures);

  const auto again = run(on_disk(same), 1);
  const auto others = run(on_disk(other), 1);

  EXPECT_EQ(again[0].decoded_hits, kPictures);
  EXPECT_EQ(others[0].decoded_hits, 0u);
  expect_same(again, run(with_ops(same), 1));
  expect_same(others, run(with_ops(other), 1));
}

TEST_F(DecodedCacheTest, AFlippedBitIsACountedMiss) {
  const std::string folder = (world_.root() / "cache").string();
  LoaderOptions options = with_ops();
  options.cache = CacheOptions{.disk = folder,
                               .disk_limit_bytes = 16 * kMiB,
                               .form = CacheForm::kDecoded};
  EXPECT_EQ(run(options, kDecodedEpochs).back().decoded_hits, kPictures);
  const auto plain = run(with_ops(), 2);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    // In the middle of the pages that were written last: some of these hold
    // records still.
    std::fstream bytes(file.path(),
                       std::ios::binary | std::ios::in | std::ios::out);
    const auto pages = static_cast<std::int64_t>(file.file_size() / 4096);
    for (std::int64_t page = std::max<std::int64_t>(0, pages - 60);
         page < pages; ++page) {
      const std::int64_t at = page * 4096 + 2048;
      bytes.seekg(at);
      const char was = static_cast<char>(bytes.get());
      bytes.seekp(at);
      bytes.put(static_cast<char>(~was));
    }
  }

  const auto stats = run(options, 2);

  expect_same(stats, plain);
  EXPECT_GE(bad_records_, 1);
  EXPECT_GE(stats[0].misses, 1u);
  EXPECT_EQ(stats[0].disk_hits + stats[0].misses, kPictures);
}

TEST_F(DecodedCacheTest, LocalRanksShareWhatTheyDecoded) {
  const Dataset dataset = must(world_.open(url()));
  const auto plain = run(with_ops(), 1);
  std::vector<std::unique_ptr<Loader>> ranks;
  for (std::uint32_t rank : {0, 1}) {
    LoaderOptions options = with_form(CacheForm::kDecoded);
    options.cache->ram_bytes = 8 * kMiB;
    ranks.push_back(must(world_.load_local_rank(dataset, options, rank)));
  }
  std::uint64_t decoded_hits = 0;
  // Each sees what the other wrote within a second.
  for (int epoch = 0; epoch < 400 && decoded_hits != kPictures; ++epoch) {
    decoded_hits = 0;
    Hash128 content;
    for (const auto& rank : ranks) {
      const Seen seen = must(run_epoch(*rank));
      decoded_hits += rank->stats().back().decoded_hits;
      content += seen.stats.content_hash;
    }
    if (epoch == 0) {
      EXPECT_EQ(content, plain[0].content_hash);
    }
  }
  EXPECT_EQ(decoded_hits, kPictures);
}

TEST_F(DecodedCacheTest, AStateGoesOnWithItOrWithout) {
  auto plain = must(world_.load(url(), with_ops()));
  (void)must(run_epoch(*plain));
  const Seen second = must(run_epoch(*plain));

  auto first = must(world_.load(url(), with_form(CacheForm::kDecoded)));
  (void)must(run_epoch(*first));
  const Loader::Iteration half = must(first->begin());
  for (int i = 0; i < 2; ++i) (void)must(first->next(half));
  const std::string state = first->state();
  const Hash128 begun = first->stats().back().content_hash;

  for (const LoaderOptions& options :
       {with_ops(), with_form(CacheForm::kDecoded)}) {
    auto later = must(world_.load(url(), options));
    must(later->load_state(state));
    const Seen rest = must(run_epoch(*later));
    EXPECT_EQ(begun + rest.stats.content_hash, second.stats.content_hash);
  }
}

TEST_F(DecodedCacheTest, WhatIsDamagedOrTooLargeIsKeptAsBytes) {
  std::string damaged = jpeg(1);
  damaged.resize(damaged.size() * 3 / 4);
  std::ofstream(world_.root() / "pictures" / "a" / "damaged.jpg",
                std::ios::binary)
      << damaged << "\xff\xd9";
  // A crop of it may be decoded at half its size.
  std::ofstream(world_.root() / "pictures" / "a" / "large.jpg",
                std::ios::binary)
      << testing::encode_jpeg(testing::picture(90, 90));
  LoaderOptions plain = with_ops();
  plain.drop_last = false;
  LoaderOptions options = with_form(CacheForm::kDecoded);
  options.drop_last = false;

  const auto stats = run(options, kDecodedEpochs);

  expect_same(stats, run(plain, kDecodedEpochs));
  EXPECT_EQ(stats.back().ram_hits, kPictures + 2);
  EXPECT_EQ(stats.back().decoded_hits, kPictures);
  EXPECT_EQ(stats.back().gets, 0u);
}

TEST_F(DecodedCacheTest, ATinyBudgetEndsNoEpoch) {
  LoaderOptions options = with_form(CacheForm::kDecoded);
  // A batch, and little more than one picture: a record to be made finds no
  // room beside it, and the picture is kept as bytes.
  options.memory_bytes = 16 * (24 * 24 * 3 * 4 + 1024) + 40 * kKiB;

  const auto stats = run(options, kDecodedEpochs);

  expect_same(stats, run(with_ops(), kDecodedEpochs));
  EXPECT_EQ(stats.back().gets, 0u);
}

// --- shards ------------------------------------------------------------------

TEST_F(DecodedCacheTest, OfAShardNothingIsReadAgain) {
  std::filesystem::create_directories(world_.root() / "shards");
  for (std::uint64_t shard = 0; shard < 4; ++shard) {
    testing::TarBuilder tar;
    for (std::uint64_t i = 0; i < 16; ++i) {
      const std::uint64_t number = 16 * shard + i;
      tar.add(fmt::format("{:04}.jpg", number), jpeg(number));
      tar.add(fmt::format("{:04}.cls", number), std::to_string(number % 10));
    }
    std::ofstream(world_.root() / "shards" / fmt::format("{}.tar", shard),
                  std::ios::binary)
        << tar.finish();
  }
  const std::string url = (world_.root() / "shards").string();
  for (const char* ops :
       {kOps, "decode_image,random_resized_crop:24,parse_int"}) {
    const auto plain = run(with_ops(ops), kDecodedEpochs, url);
    const auto stats =
        run(with_form(CacheForm::kDecoded, ops), kDecodedEpochs, url);

    expect_same(stats, plain);
    EXPECT_EQ(stats[0].misses, 4u);  // Whole pieces.
    // The second epoch begins to be read before all of the first is decoded.
    EXPECT_EQ(stats.back().decoded_hits, kPictures);
    EXPECT_EQ(stats.back().ram_hits, 2 * kPictures);  // And the labels.
    EXPECT_EQ(stats.back().gets, 0u) << ops;
  }
}

// --- several fields ----------------------------------------------------------

TEST_F(DecodedCacheTest, TwoFieldsOfOneColumnShareARecord) {
  std::vector<OpSpec> ops = {
      {.name = "decode_image",
       .params_json = R"({"field": "data", "to": "weak"})"},
      {.name = "random_resized_crop",
       .params_json = R"({"size": 24, "field": "weak", "independent": true})"},
      {.name = "decode_image",
       .params_json = R"({"field": "data", "to": "strong"})"},
      {.name = "random_resized_crop",
       .params_json =
           R"({"size": 20, "field": "strong", "independent": true})"}};
  LoaderOptions plain = usual_options();
  plain.ops = ops;
  LoaderOptions options = with_form(CacheForm::kDecoded);
  options.ops = ops;

  const auto stats = run(options, kDecodedEpochs);

  expect_same(stats, run(plain, kDecodedEpochs));
  EXPECT_EQ(stats.back().decoded_hits, kPictures);
  EXPECT_EQ(stats.back().gets, 0u);

  ops.push_back({.name = "decode_image",
                 .params_json = R"({"field": "data", "to": "third"})"});
  ops.push_back({.name = "resize", .params_json = R"({"size": [20, 20]})"});
  options.ops = ops;  // Cut elsewhere: there is nothing that all could share.
  auto refused = world_.load(url(), options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("cut elsewhere"), std::string::npos);
}

/// Inverts pixels, and counts.
class Inverted final : public UserFunction {
 public:
  Result<Value> call(const FunctionInput& input,
                     const SampleRandom& /*random*/) const override {
    ++calls;
    ArrayValue made{.spec = input.spec, .bytes = Buffer(input.bytes.size())};
    std::ranges::transform(input.bytes, made.bytes.span().begin(),
                           [](std::byte b) { return ~b; });
    return Value(std::move(made));
  }
  mutable std::atomic<int> calls = 0;
};

TEST_F(DecodedCacheTest, AFunctionIsCalledOnceADelivery) {
  for (const CacheForm form : {CacheForm::kDecoded, CacheForm::kAuto}) {
    const auto function = std::make_shared<const Inverted>();
    LoaderOptions options = with_form(form);
    options.ops = *parse_ops("decode_image,resize:30/30,random_crop:24");
    options.ops.insert(
        options.ops.begin() + 2,
        OpSpec{.name = "python", .params_json = "{}", .function = function});
    options.epochs = kDecodedEpochs;
    LoaderOptions plain = options;
    plain.cache.reset();

    const auto stats = run(options, kDecodedEpochs);

    EXPECT_EQ(function->calls, static_cast<int>(kDecodedEpochs * kPictures));
    if (form == CacheForm::kDecoded) {
      EXPECT_EQ(stats.back().decoded_hits, kPictures);
    }
    expect_same(stats, run(plain, kDecodedEpochs));
  }
}

/// Asks for more memory than the system has.
class Hungry final : public UserFunction {
 public:
  Result<Value> call(const FunctionInput& /*input*/,
                     const SampleRandom& /*random*/) const override {
    throw std::bad_alloc();
  }
};

TEST_F(DecodedCacheTest, ASampleThatTheSystemHasNoMemoryForIsAnError) {
  LoaderOptions options = with_ops("decode_image,resize:30/30");
  options.ops.push_back(OpSpec{.name = "python",
                               .params_json = "{}",
                               .function = std::make_shared<const Hungry>()});
  options.on_error = OnError::kSubstitute;  // No sample is bad for that.
  auto loader = must(world_.load(url(), options));

  const Result<Seen> seen = run_epoch(*loader);

  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_NE(seen.error().message().find("no more memory"), std::string::npos)
      << seen.error().message();
  loader->close();
  EXPECT_EQ(loader->metrics()->value(Metric::kRuntimeReservedBytes), 0);
}

/// Lets nothing through before it is open.
class Gate final : public UserFunction {
 public:
  Result<Value> call(const FunctionInput& input,
                     const SampleRandom& /*random*/) const override {
    is_open.wait(false);
    ++calls;
    ArrayValue same{.spec = input.spec, .bytes = Buffer(input.bytes.size())};
    std::ranges::copy(input.bytes, same.bytes.span().begin());
    return Value(std::move(same));
  }
  void open() const {
    is_open = true;
    is_open.notify_all();
  }
  mutable std::atomic<bool> is_open = false;
  mutable std::atomic<std::uint64_t> calls = 0;
};

// With a short lookahead, the samples that come first are those cached by then.
TEST_F(DecodedCacheTest, WithFirstWithinFewAreOnTheirWayToBeMade) {
  constexpr std::uint64_t kMany = 200;
  constexpr std::uint64_t kMost = 64;
  make_pictures(kMany, "many");
  for (const bool is_first : {false, true}) {
    const auto gate = std::make_shared<const Gate>();
    LoaderOptions options = with_form(CacheForm::kDecoded);
    options.ops = *parse_ops("decode_image,resize:30/30,random_crop:24");
    options.ops.push_back(
        OpSpec{.name = "python", .params_json = "{}", .function = gate});
    options.max_in_flight = 128;
    options.drop_last = false;
    options.epochs = 2;
    if (is_first) options.cache->first_within = kMany;
    auto loader = must(world_.load((world_.root() / "many").string(), options));
    (void)must(loader->begin());
    const auto gets = [&] { return loader->stats().back().gets; };
    const std::uint64_t expected = is_first ? kMost : kMany;
    const auto wait = [&] {
      (void)must(loader->peek_within(std::chrono::milliseconds(1)));
    };
    for (int i = 0; gets() < expected && i < 60'000; ++i) wait();

    for (int i = 0; i < 200; ++i) wait();

    EXPECT_GE(gets(), expected);
    EXPECT_LE(gets(), expected + 1);  // The first one tells the shape.
    gate->open();
    EXPECT_EQ(flat(must(run_epoch(*loader))).size(), kMany);
  }
}

// --- which form --------------------------------------------------------------

// Pictures so large that decoding is ten times the rest, however busy the
// machine on which both are measured.
TEST_F(DecodedCacheTest, WithRoomForAllAutoKeepsAllDecoded) {
  make_pictures(kPictures, "large", 200);
  const std::string large = (world_.root() / "large").string();
  constexpr char kSmall[] = "decode_image,resize:30/30,random_crop:24";
  const auto plain = run(with_ops(kSmall), 6, large);

  const auto stats = run(with_form(CacheForm::kAuto, kSmall), 6, large);

  expect_same(stats, plain);
  ASSERT_EQ(decisions_.size(), 1u);
  EXPECT_EQ(decisions_[0].setting, Setting::kDecodedShare);
  EXPECT_EQ(decisions_[0].after, 1);
  EXPECT_NE(decisions_[0].reason.find("decoded: "), std::string::npos);
  // Two epochs were planned before it was known.
  EXPECT_EQ(stats[5].decoded_hits, kPictures);
  EXPECT_EQ(stats[5].gets, 0u);
}

TEST_F(DecodedCacheTest, AutoChoosesByWhatItsAgentAllows) {
  auto loader = must(world_.load(url(), with_form(CacheForm::kAuto)));
  loader->set_share({.threads = {},
                     .in_flight = {},
                     .bytes_per_second = {},
                     .ram_bytes = kMiB,
                     .disk_bytes = {}});
  ASSERT_TRUE(comes_true([&] {  // The writer of the tier carries it out.
    return loader->metrics()->value(Metric::kCacheRamAllowedBytes) == kMiB;
  }));
  (void)must(run_epoch(*loader));

  const auto decisions = loader->decisions();
  const auto chosen =
      std::ranges::find(decisions, Setting::kDecodedShare, &Decision::setting);
  ASSERT_NE(chosen, decisions.end());
  EXPECT_NE(chosen->reason.find(": 1 MiB for 64 samples"), std::string::npos)
      << chosen->reason;
}

// All of an epoch is planned before the first sample is decoded, so before a
// form is chosen; samples behind those that were tried are kept in it.
TEST_F(DecodedCacheTest, WhatWasPlannedBeforeAutoChoseIsDecodedToo) {
  const auto gate = std::make_shared<const Gate>();
  LoaderOptions options = with_ops("decode_image,resize:30/30,random_crop:24");
  options.ops.insert(
      options.ops.begin() + 2,
      OpSpec{.name = "python", .params_json = "{}", .function = gate});
  options.threads = 1;  // Which takes samples in the order of the plan.
  options.cache = CacheOptions{.disk = (world_.root() / "cache").string(),
                               .disk_limit_bytes = 16 * kMiB,
                               .form = CacheForm::kAuto};
  world_.serve();
  Dataset dataset = must(world_.open("s3://pictures"));
  dataset.store_options.io_threads = 1;  // Which brings one after another.
  auto loader = must(world_.load(std::move(dataset), options));
  (void)must(loader->begin());
  const bool is_planned = comes_true([&] {
    return loader->metrics()->value(Metric::kCacheMisses) ==
           static_cast<std::int64_t>(kPictures);
  });
  gate->open();
  ASSERT_TRUE(is_planned);
  ASSERT_TRUE(comes_true([&] { return gate->calls == kPictures; }));
  ASSERT_EQ(loader->decisions().size(), 1u);
  loader.reset();

  options.cache->form = CacheForm::kDecoded;
  auto later = must(world_.load("s3://pictures", options));
  const Seen seen = must(run_epoch(*later));

  // The very first to come is looked at before anything is known of any.
  EXPECT_GE(seen.stats.decoded_hits, kPictures - 1);
}

TEST_F(DecodedCacheTest, WhatTakesItsSizesFromTheMachineChoosesByItself) {
  // Both forms of each take one page: a decoded record costs no room.
  LoaderOptions options = with_ops("decode_image,resize:20/20,random_crop:16");
  options.cache = CacheOptions{.is_auto = true};
  options.epochs = 6;

  const auto stats = run(options, 6);

  ASSERT_EQ(decisions_.size(), 1u);
  EXPECT_EQ(decisions_[0].setting, Setting::kDecodedShare);
  EXPECT_NE(decisions_[0].reason.find("the first of 6 epochs"),
            std::string::npos);
  EXPECT_GT(stats[5].decoded_hits, 0u);

  // Nobody knows whether another epoch will read what this one would make.
  options.epochs.reset();
  EXPECT_EQ(run(options, kDecodedEpochs).back().decoded_hits, 0u);
  EXPECT_TRUE(decisions_.empty());
}

TEST_F(DecodedCacheTest, WhereNoPictureHasARecordAutoKeepsBytes) {
  const char* const ops = "decode_image,random_resized_crop:8";

  const auto stats = run(with_form(CacheForm::kAuto, ops), kDecodedEpochs);

  expect_same(stats, run(with_ops(ops), kDecodedEpochs));
  EXPECT_TRUE(decisions_.empty());
  EXPECT_EQ(stats.back().ram_hits, kPictures);
  EXPECT_EQ(stats.back().decoded_hits, 0u);
}

TEST_F(DecodedCacheTest, WhatCannotBeIsRefused) {
  const auto refused = [&](const LoaderOptions& options) {
    auto loader = world_.load(url(), options);
    return loader ? std::string("accepted") : loader.error().message();
  };

  EXPECT_NE(refused(with_form(CacheForm::kDecoded, "")).find("decode_image"),
            std::string::npos);
  LoaderOptions peers = with_form(CacheForm::kDecoded);
  peers.cache->ram_bytes = 0;
  peers.cache->peers = {"127.0.0.1:1"};
  EXPECT_NE(refused(peers).find("give ram="), std::string::npos);
  EXPECT_EQ(cache_form_of("pixels").error().message(),
            "the cache's form \"pixels\"; it is encoded, decoded or auto");
}

}  // namespace
}  // namespace leat
