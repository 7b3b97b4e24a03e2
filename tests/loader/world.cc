#include "tests/loader/world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "leat/base/hash.h"
#include "leat/engine/unindexed.h"

namespace leat {

World::World() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "leat-loader-XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::filesystem::path folder =
        root_ / "data" / "train" /
        std::string(1, static_cast<char>('a' + i % 3));
    std::filesystem::create_directories(folder);
    std::ofstream file(folder / fmt::format("{:04}.bin", i), std::ios::binary);
    const std::uint64_t size = i % 17 == 0 ? 0 : mix64(i) % 3000;
    for (std::uint64_t b = 0; b < size; ++b) {
      file.put(static_cast<char>(mix64(i * 10'000 + b)));
    }
  }
  env_ = fake_env({{"LEAT_CACHE_DIR", (root_ / "cache").string()}});
}

World::~World() {
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void World::serve(const std::vector<std::string>& faults) {
  server_.reset();
  BucketOptions options;
  options.folder = root_.string();
  for (const std::string& text : faults) {
    Result<FaultRate> fault = parse_fault_rate(text);
    ASSERT_TRUE(fault) << fault.error().message();
    options.behaviour.faults.push_back(*fault);
  }
  Result<std::unique_ptr<BucketServer>> server =
      open_bucket_server(std::move(options));
  ASSERT_TRUE(server) << server.error().message();
  server_ = *std::move(server);
  env_ = fake_env({{"LEAT_CACHE_DIR", (root_ / "cache").string()},
                   {"AWS_ENDPOINT_URL_S3", server_->url()}});
}

Result<Dataset> World::open(const std::string& url) const {
  StoreOptions store;
  store.no_sign_request = true;
  return open_dataset(url, store, {}, env_, {});
}

Result<std::unique_ptr<Loader>> World::load(
    const std::string& url, const LoaderOptions& options) const {
  LEAT_TRY(Dataset dataset, open(url));
  return load(std::move(dataset), options);
}

Result<std::unique_ptr<Loader>> World::load(
    Dataset dataset, const LoaderOptions& options) const {
  return Loader::open(std::move(dataset), options, env_);
}

Result<std::unique_ptr<Loader>> World::load_local_rank(
    Dataset dataset, LoaderOptions options, std::uint32_t rank) const {
  options.rank = Rank{.rank = rank, .world_size = 2};
  return Loader::open(std::move(dataset), std::move(options),
                      fake_env({{"RANK", std::to_string(rank)},
                                {"WORLD_SIZE", "2"},
                                {"LOCAL_RANK", std::to_string(rank)},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"XDG_RUNTIME_DIR", root_.string()}}));
}

Result<std::unique_ptr<Loader>> World::load_unindexed(
    const std::string& url, const LoaderOptions& options) const {
  StoreOptions store;
  store.no_sign_request = true;
  LEAT_TRY(LoaderSource source,
           open_for_loader(url, store, {}, options, env_, {}));
  return Loader::open(std::move(source), options, env_);
}

LoaderOptions usual_options() {
  LoaderOptions options;
  options.global_batch_size = 16;
  options.rank = Rank{};
  options.seed = 7;
  return options;
}

Result<Seen> run_epoch(Loader& loader) {
  Seen seen;
  LEAT_TRY(const Loader::Iteration iteration, loader.begin());
  while (true) {
    LEAT_TRY(Loader::Next next, loader.next(iteration));
    if (next.is_end()) break;
    std::vector<std::uint64_t> ids;
    for (const SampleId id : next.batch().ids) ids.push_back(id.value);
    seen.batches.push_back(std::move(ids));
  }
  seen.stats = loader.stats().back();
  return seen;
}

std::vector<std::uint64_t> flat(const Seen& seen) {
  std::vector<std::uint64_t> ids;
  for (const auto& batch : seen.batches) {
    ids.insert(ids.end(), batch.begin(), batch.end());
  }
  return ids;
}

}  // namespace leat
