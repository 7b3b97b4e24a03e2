// A small dataset on disk, a bucket over it, and runs of the loader on either.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/env.h"
#include "leat/bucket/bucket_server.h"
#include "leat/engine/loader/loader.h"

namespace leat {

/// The dataset of a World through its bucket.
inline constexpr char kBucketUrl[] = "s3://data/train";

/// The value; without one the test fails, and ends.
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message();
    std::abort();
  }
  return *std::move(result);
}
inline void must(const Result<void>& result) {
  if (!result) ADD_FAILURE() << result.error().message();
}

/// The results of one epoch.
struct Seen {
  std::vector<std::vector<std::uint64_t>> batches;  ///< Sample ids.
  EpochStats stats;
};

/// A temporary folder with the bucket `data`: 240 objects of 0 to 3,000 bytes
/// in three classes, the same in every run.
class World {
 public:
  static constexpr std::uint64_t kSamples = 240;

  World();
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::string folder() const { return (root_ / "data").string(); }
  /// Serves the folder; an earlier server ends. Each fault as --fault takes it.
  void serve(const std::vector<std::string>& faults = {});

  Result<Dataset> open(const std::string& url) const;
  Result<std::unique_ptr<Loader>> load(const std::string& url,
                                       const LoaderOptions& options) const;

  /// The same with a dataset that was opened before.
  Result<std::unique_ptr<Loader>> load(Dataset dataset,
                                       const LoaderOptions& options) const;

  /// A rank of two on one node.
  Result<std::unique_ptr<Loader>> load_local_rank(Dataset dataset,
                                                  LoaderOptions options,
                                                  std::uint32_t rank) const;

  /// As above, but shards without a catalogue are left for the first epoch to
  /// index, if the options let it.
  Result<std::unique_ptr<Loader>> load_unindexed(
      const std::string& url, const LoaderOptions& options) const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
  std::unique_ptr<BucketServer> server_;
  Env env_;
};

/// Options of the tests: batches of 16, shuffled, one rank.
LoaderOptions usual_options();

/// Runs the iteration that begin() starts, to its end.
Result<Seen> run_epoch(Loader& loader);

/// The ids of all batches, one after another.
std::vector<std::uint64_t> flat(const Seen& seen);

}  // namespace leat
