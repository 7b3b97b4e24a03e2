#include "tests/credentials/credential_world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <utility>

#include "leat/base/hash.h"

namespace leat {

namespace {

void write_objects(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (std::uint64_t i = 0; i < CredentialWorld::kSamples; ++i) {
    std::ofstream file(folder / fmt::format("{:04}.bin", i), std::ios::binary);
    for (std::uint64_t b = 0; b < mix64(i) % 3000; ++b) {
      file.put(static_cast<char>(mix64(i * 10'000 + b)));
    }
  }
}

}  // namespace

WorldTimes pace() {
  using std::chrono::seconds;
  const char* const whole = std::getenv("LEAT_WHOLE_CREDENTIAL_EPOCH");
  if (whole == nullptr || std::string_view(whole) != "1") return {};
  return {.lifetime = seconds(20), .epoch = seconds(180)};
}

CredentialWorld::CredentialWorld(WorldTimes pace,
                                 std::chrono::milliseconds takes)
    : issuer_({.lifetime = pace.lifetime, .takes = takes}),
      issuer_server_([this](const testing::ServerRequest& request) {
        return issuer_.answer(request);
      }) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "leat-creds-XXXXXX").string();
  root_ = ::mkdtemp(pattern.data());
  write_objects(root_ / "served" / "data" / "train");
  BucketOptions options;
  options.folder = (root_ / "served").string();
  // The requests that are in flight at once share the epoch's time.
  options.behaviour.latency =
      Latency::constant(pace.epoch * kInFlight / kSamples);
  options.access.find_temporary =
      [this](std::string_view id) -> std::optional<TemporaryCredentials> {
    const auto issued = issuer_.find(id);
    if (!issued) return std::nullopt;
    if (std::chrono::system_clock::now() >= issued->expires_at) ++late_;
    return TemporaryCredentials{issued->keys, issued->expires_at};
  };
  auto bucket = open_bucket_server(std::move(options));
  EXPECT_TRUE(bucket) << bucket.error().message();
  bucket_ = *std::move(bucket);
}

CredentialWorld::~CredentialWorld() {
  bucket_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string CredentialWorld::write(const std::string& name,
                                   std::string_view text) const {
  const std::filesystem::path path = root_ / "home" / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

testing::Variables CredentialWorld::variables() const {
  return {{"HOME", (root_ / "home").string()},
          {"LEAT_CACHE_DIR", (root_ / "cache").string()},
          {"AWS_ENDPOINT_URL_S3", bucket_url()},
          {"AWS_EC2_METADATA_DISABLED", "true"}};
}

Result<EpochStats> run_epoch(const std::string& url, const StoreOptions& store,
                             const Env& env) {
  LEAT_TRY(Dataset dataset, open_dataset(url, store, {}, env, {}));
  LoaderOptions options;
  options.global_batch_size = 16;
  options.rank = Rank{};
  options.seed = 7;
  options.epochs = 1;
  options.max_in_flight = CredentialWorld::kInFlight;
  LEAT_TRY(const auto loader, Loader::open(std::move(dataset), options, env));
  LEAT_TRY(const Loader::Iteration epoch, loader->begin());
  while (true) {
    LEAT_TRY(const Loader::Next next, loader->next(epoch));
    if (next.is_end()) return loader->stats().back();
  }
}

std::string print_command(const std::string& url) {
  return std::filesystem::read_symlink("/proc/self/exe").string() +
         " --print " + url;
}

}  // namespace leat
