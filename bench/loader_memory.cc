// loader_memory FOLDER CATALOGUE CACHED BATCHES: measures the memory of a
// loader over a dataset, with CACHED of its records cached and BATCHES batches
// delivered after that; prints one JSON object.
//
// The loader is a user's: reads ahead from files in FOLDER, a RAM tier,
// Belady's. Only the bodies in the tier take no room, because the machine may
// not have it: they are of zeros, as the files are, and are left as holes.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "leat/base/check.h"
#include "leat/base/env.h"
#include "leat/cache/segment_format.h"
#include "leat/engine/loader/loader.h"
#include "leat/index/catalogue_file.h"

namespace {

constexpr std::uint64_t kBatch = 256;
constexpr std::uint64_t kMemory = 64 * leat::kMiB;
constexpr std::uint64_t kLookEvery = 64;  // Batches.

/// Leaves holes where records are.
class IndexOnly final : public leat::SystemFileOps {
 public:
  explicit IndexOnly(std::uint64_t body_bytes) : body_bytes_(body_bytes) {}

  ssize_t pwrite(int fd, std::span<const std::byte> bytes,
                 std::uint64_t offset) override {
    if (bytes.size() != body_bytes_) {
      return SystemFileOps::pwrite(fd, bytes, offset);
    }
    struct stat now {};
    LEAT_CHECK(::fstat(fd, &now) == 0);
    const auto end = static_cast<off_t>(offset + bytes.size());
    if (end > now.st_size) LEAT_CHECK(::ftruncate(fd, end) == 0);
    return static_cast<ssize_t>(bytes.size());
  }

 private:
  const std::uint64_t body_bytes_;
};

/// The resident memory, as /proc/self/status has it; in bytes.
struct Resident {
  std::uint64_t own = 0;    // Heaps and stacks.
  std::uint64_t files = 0;  // Mapped: programs, and the catalogue.
  std::uint64_t tier = 0;   // The mapped part of the RAM tier's memory.
  std::uint64_t page_tables = 0;

  /// All but the bytes of the tier.
  std::uint64_t sum() const { return own + files + page_tables; }
};

Resident resident() {
  std::map<std::string, std::uint64_t> found;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    found[line.substr(0, colon)] =
        std::strtoull(line.c_str() + colon + 1, nullptr, 10) * 1024;
  }
  return {.own = found["RssAnon"],
          .files = found["RssFile"],
          .tier = found["RssShmem"],
          .page_tables = found["VmPTE"]};
}

std::string to_json(const Resident& at) {
  return fmt::format(
      R"({{"sum": {}, "own": {}, "files": {}, "page_tables": {}, )"
      R"("tier": {}}})",
      at.sum(), at.own, at.files, at.page_tables, at.tier);
}

std::unique_ptr<leat::Loader> open_loader(
    const std::string& folder,
    const std::shared_ptr<const leat::Catalogue>& catalogue,
    std::uint64_t cached) {
  const std::uint64_t body = catalogue->range(0, {0}).length_bytes;
  leat::CacheOptions cache;
  cache.ram_bytes = cached * leat::record_cost(body);
  cache.file_ops = std::make_shared<IndexOnly>(body);
  leat::LoaderOptions options;
  options.global_batch_size = kBatch;
  options.rank = leat::Rank{.rank = 0, .world_size = 1};
  options.shuffle = leat::ShuffleChoice::kFull;
  options.hashes = false;
  options.memory_bytes = kMemory;
  options.cache = cache;
  auto loader = leat::Loader::open(
      leat::Dataset{.url = "file://" + folder, .catalogue = catalogue}, options,
      leat::process_env());
  if (!loader) std::fprintf(stderr, "%s\n", loader.error().message().c_str());
  LEAT_CHECK(loader.has_value());
  return *std::move(loader);
}

/// This many batches of the next epoch; the most that was resident.
Resident deliver(leat::Loader& loader, std::uint64_t batches) {
  Resident most;
  const auto epoch = loader.begin();
  LEAT_CHECK(epoch.has_value());
  for (std::uint64_t i = 0; i < batches; ++i) {
    auto next = loader.next(*epoch);
    if (!next) std::fprintf(stderr, "%s\n", next.error().message().c_str());
    LEAT_CHECK(next.has_value() && !next->is_end());
    if (i % kLookEvery != 0 && i + 1 != batches) continue;
    const Resident now = resident();
    if (now.sum() > most.sum()) most = now;
  }
  return most;
}

std::uint64_t record_count(const leat::Loader& loader,
                           const leat::Catalogue& catalogue) {
  const auto bytes = static_cast<std::uint64_t>(
      loader.metrics()->value(leat::Metric::kCacheRamBytes));
  return bytes / leat::record_cost(catalogue.range(0, {0}).length_bytes);
}

int run(const std::string& folder, const std::string& path,
        std::uint64_t cached, std::uint64_t batches) {
  const Resident before = resident();
  auto mapped = leat::map_catalogue(path);
  LEAT_CHECK(mapped.has_value());
  const auto catalogue =
      std::make_shared<const leat::Catalogue>(*std::move(mapped));
  auto loader = open_loader(folder, catalogue, cached);
  const Resident opened = resident();
  // Until the tier is full, and a little: then each record has to go for one.
  const Resident filled = deliver(*loader, cached * 11 / 10 / kBatch);
  const Resident most = deliver(*loader, batches);
  const auto epochs = loader->stats();
  std::printf(
      "%s\n",
      fmt::format(
          R"({{"samples": {}, "batches": {}, "records": {}, "hits": {}, )"
          R"("catalogue_bytes": {}, "before": {}, "opened": {}, )"
          R"("filled": {}, "most": {}}})",
          catalogue->samples(), batches, record_count(*loader, *catalogue),
          epochs.back().ram_hits, std::filesystem::file_size(path),
          to_json(before), to_json(opened), to_json(filled), to_json(most))
          .c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return run(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10),
             std::strtoull(argv[4], nullptr, 10));
}
