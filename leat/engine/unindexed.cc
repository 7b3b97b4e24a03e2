#include "leat/engine/unindexed.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "leat/base/errors.h"
#include "leat/engine/sources.h"
#include "leat/index/build_turn.h"
#include "leat/index/catalogue_lock.h"
#include "leat/index/freshness.h"
#include "leat/index/listing.h"
#include "leat/runtime/launcher.h"
#include "leat/runtime/log.h"

namespace leat {
namespace {

/// The place of this process as set by these options; nullopt if it is unknown,
/// or if everything has to be known beforehand.
std::optional<Launch> launch_of_stream(const LoaderOptions& options,
                                       const Env& env) {
  if (options.shuffle != ShuffleChoice::kStream) return std::nullopt;
  // Jobs that share a cache refer to samples by their numbers.
  if (options.cache && options.cache->is_shared) return std::nullopt;
  const Result<Launch> said = read_launch(env);
  if (!said && !options.rank) return std::nullopt;
  Launch launch = said ? *said : Launch{};
  if (options.rank) launch.rank = *options.rank;
  return launch;
}

/// Shards that all have an index beside them are indexed at once, with a few
/// small reads each.
bool has_unindexed_shards(const SortedObjects& objects) {
  return objects.layout == Layout::kShards &&
         std::ranges::any_of(objects.data, [&](const ObjectInfo& shard) {
           return member_index_of(shard, objects.companions) == nullptr;
         });
}

void add_object(Hasher128& hasher, std::string_view key, std::uint64_t size) {
  hasher.update(std::uint64_t{key.size()});
  hasher.update(as_bytes(key));
  hasher.update(size);
}

/// The work of one open_for_loader() call.
struct Opening {
  std::string_view url;
  const StoreOptions& store_options;
  const CatalogueOptions& options;
  const Env& env;
  const std::stop_token& stop;
  std::shared_ptr<Metrics> counted = std::make_shared<Metrics>();
  OpenedStore opened = {};
  /// The data has changed since this catalogue was made.
  std::optional<OpenedCatalogue> outdated = std::nullopt;

  Result<LoaderSource> open_dataset(const CatalogueOptions& how) const {
    LEAT_TRY(Dataset dataset,
             leat::open_dataset(url, store_options, how, env, stop));
    dataset.opening->take_counters(*counted);
    return LoaderSource(std::move(dataset));
  }

  UnindexedShards unindexed(SortedObjects objects) const {
    return {.url = opened.url,
            .store_options = store_options,
            .catalogue_options = options,
            .objects = std::move(objects),
            .opening = counted,
            .log = nullptr,
            .job = nullptr};
  }

  /// The log in which the ranks of this node share their findings; nullopt if
  /// nothing is kept.
  std::optional<std::string> log_path() const;
  void warn_of_change(const SortedObjects& objects) const;
  /// Lists the data: unindexed shards, or else the dataset.
  Result<LoaderSource> list() const;
  /// Lists once for all ranks of this node, unless this rank has.
  Result<LoaderSource> list_once(
      const Launch& launch,
      std::optional<LoaderSource> listed = std::nullopt) const;
  /// Lists once for all ranks of the job, which then scan together.
  Result<LoaderSource> list_in_job(std::unique_ptr<JobScan> job,
                                   const Launch& launch) const;
};

/// Null unless all ranks share a board and deal samples by their shards.
std::unique_ptr<JobScan> job_scan_of(std::string_view url,
                                     const CatalogueOptions& options,
                                     const LoaderOptions& loader,
                                     const Launch& launch) {
  if (options.scans == nullptr || options.scans->rank() != launch.rank ||
      !may_deal_by_shard(loader) || loader.process) {
    return nullptr;
  }
  return std::make_unique<JobScan>(options.scans, url);
}

/// Whether there may be another folder of that name on each node of the job.
bool is_folder_of_a_node(const Store& store, Launch launch, const Env& env) {
  if (etag_kind_of(store) != EtagKind::kFile) return false;
  if (!launch.is_local_known) place_on_node(launch, env);
  return !launch.is_local_known ||
         launch.local.world_size < launch.rank.world_size;
}

std::optional<std::string> Opening::log_path() const {
  auto path = kept_catalogue_path(opened.identity, options.index.classes, env);
  if (path) *path += ".scan";
  return path;
}

void Opening::warn_of_change(const SortedObjects& objects) const {
  const CatalogueChange change =
      change_between(*outdated->catalogue, objects.data,
                     etags_apply(*outdated->catalogue, *opened.store));
  const auto now = std::chrono::floor<std::chrono::seconds>(
      std::chrono::system_clock::now());
  log_warning(describe(change, opened.store->url_of(opened.prefix),
                       outdated->listed_at, now));
}

Result<LoaderSource> Opening::list() const {
  auto listed = list_data(*opened.store, opened.prefix, {}, stop);
  if (!listed) return open_dataset(options);  // Opening will report the error.
  Result<SortedObjects> objects = sort_objects(*listed);
  if (objects && has_unindexed_shards(*objects)) {
    if (outdated) warn_of_change(*objects);
    return LoaderSource(unindexed(*std::move(objects)));
  }
  // So it is not listed again.
  CatalogueOptions with_objects = options;
  with_objects.index.objects = [&](const std::stop_token&) {
    return Result<std::vector<ObjectInfo>>(*listed);
  };
  if (outdated) with_objects.refresh = Refresh::always();
  return open_dataset(with_objects);
}

Result<LoaderSource> Opening::list_once(
    const Launch& launch, std::optional<LoaderSource> listed) const {
  const std::vector<std::string>& classes = options.index.classes;
  const auto path = kept_catalogue_path(opened.identity, classes, env);
  const auto log_at = log_path();
  if (!path || !log_at) return open_dataset(options);
  const auto before = catalogue_identity(*path);
  std::optional<OpenedCatalogue> kept;
  std::unique_ptr<ScanLog> log;
  const auto look = [&]() -> Result<Sight> {
    const auto now = catalogue_identity(*path);
    if (now && now != before) {
      LEAT_TRY(kept, kept_catalogue(opened.identity, classes, env));
      if (kept) return Sight::kThere;
    }
    log = ScanLog::read(*log_at);
    return log != nullptr ? Sight::kThere : Sight::kNothing;
  };
  auto turn = wait_for_turn(*log_at, launch, options.times, look, stop);
  if (!turn && turn.error().code() == ErrorCode::kCancelled) {
    return turn.error();
  }
  if (!turn) return open_dataset(options);  // The folder supports no locks.
  if (kept) {
    LEAT_TRY(Dataset dataset, dataset_of(url, store_options, *kept, counted));
    return LoaderSource(std::move(dataset));
  }
  // To the holder of the lock, a dead process's log looks as if it were still
  // being written.
  if (log != nullptr && log->take_turn() == ScanLog::Turn::kOthers) {
    UnindexedShards shards = unindexed(log->objects());
    shards.log = std::move(log);
    return LoaderSource(std::move(shards));
  }
  if (*turn) {
    if (auto opened_log = ScanLog::write(*log_at, **std::move(turn))) {
      log = *std::move(opened_log);
    }
  }
  if (log == nullptr || !log->is_writer()) return open_dataset(options);
  log->hide();
  // Data other than shards gets its catalogue here, while the others wait.
  LEAT_TRY(LoaderSource source,
           listed ? Result<LoaderSource>(*std::move(listed)) : list());
  auto* const shards = std::get_if<UnindexedShards>(&source);
  if (shards == nullptr) {
    log->remove();
    return source;
  }
  if (auto started = log->start(shards->objects); !started) {
    log_warning("each rank of this node indexes the shards for itself: " +
                started.error().message());
    log->remove();
  } else {
    shards->log = std::move(log);
  }
  return source;
}

Result<LoaderSource> Opening::list_in_job(std::unique_ptr<JobScan> job,
                                          const Launch& launch) const {
  using Who = JobScan::Listed::Who;
  LEAT_TRY(JobScan::Listed listed, job->take_listing(stop));
  if (listed.who == Who::kNobody) {
    job.reset();  // It leaves.
    return list_once(launch);
  }
  if (listed.who == Who::kOther) {
    UnindexedShards shards = unindexed(std::move(listed.objects));
    shards.job = std::move(job);
    return LoaderSource(std::move(shards));
  }
  Result<LoaderSource> source = list();
  auto* const shards =
      source ? std::get_if<UnindexedShards>(&*source) : nullptr;
  const bool is_told =
      job->tell_listing(shards == nullptr ? nullptr : &shards->objects);
  if (shards == nullptr) return source;
  if (!is_told) {
    job.reset();  // As the others do.
    return list_once(launch, *std::move(source));
  }
  shards->job = std::move(job);
  return source;
}

}  // namespace

Result<LoaderSource> open_for_loader(std::string_view url,
                                     const StoreOptions& store,
                                     const CatalogueOptions& options,
                                     const LoaderOptions& loader,
                                     const Env& env,
                                     const std::stop_token& stop) {
  if (const std::string source(url); !is_plain_place(source)) {
    LEAT_TRY(Dataset dataset, open_sources(std::span(&source, 1), {}, store,
                                           options, env, stop));
    return LoaderSource(std::move(dataset));
  }
  Opening opening{.url = url,
                  .store_options = store,
                  .options = options,
                  .env = env,
                  .stop = stop};
  const std::optional<Launch> launch = launch_of_stream(loader, env);
  if (!launch) return opening.open_dataset(options);
  // Begun in any case, so that the others know of a rank that has a catalogue.
  std::unique_ptr<JobScan> job =
      launch->rank.world_size == 1 ? nullptr
                                   : job_scan_of(url, options, loader, *launch);
  LEAT_TRY(opening.opened, open_store(url, store, env, opening.counted.get()));
  const OpenedStore& opened = opening.opened;
  if (job && is_folder_of_a_node(*opened.store, *launch, env)) job.reset();
  LEAT_TRY(FoundCatalogue found,
           find_catalogue(*opened.store, opened.prefix, opened.identity,
                          options, env, stop));
  if (found.good) {
    // Left by a killed job, before another made the catalogue.
    if (const auto path = opening.log_path()) ScanLog::remove_left(*path);
    LEAT_TRY(Dataset dataset,
             dataset_of(url, store, *found.good, opening.counted));
    return LoaderSource(std::move(dataset));
  }
  if (!opened.store->traits().can_list) return opening.open_dataset(options);
  opening.outdated = std::move(found.outdated);
  if (launch->rank.world_size == 1) return opening.list();
  return job != nullptr ? opening.list_in_job(std::move(job), *launch)
                        : opening.list_once(*launch);
}

Hash128 listing_digest(const SortedObjects& objects) {
  Hasher128 hasher;
  for (const ObjectInfo& object : objects.data) {
    add_object(hasher, object.key, object.size_bytes);
  }
  return hasher.digest();
}

Hash128 listing_digest(const Catalogue& catalogue) {
  Hasher128 hasher;
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    const ObjectView object =
        catalogue.object(ObjectIndex{static_cast<std::uint32_t>(i)});
    add_object(hasher, object.key, object.size_bytes);
  }
  return hasher.digest();
}

namespace {

enum class RowsFile : std::uint8_t { kNone, kParquet, kIndex, kMds, kLitData };

RowsFile rows_file_of(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  std::string end(
      name.substr(name.size() - std::min<std::size_t>(name.size(), 8)));
  for (char& c : end) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (end == ".parquet") return RowsFile::kParquet;
  if (name == "index.json") return RowsFile::kIndex;
  for (const char* mds : {".mds", ".mds.br", ".mds.bz2", ".mds.gz",
                          ".mds.snappy", ".mds.zst", ".mds.zstd"}) {
    if (name.ends_with(mds)) return RowsFile::kMds;
  }
  const bool is_chunk = name.starts_with("chunk-") && name.ends_with(".bin");
  return is_chunk ? RowsFile::kLitData : RowsFile::kNone;
}

}  // namespace

Result<void> check_objects_are_samples(const LoaderSource& source,
                                       std::string_view url) {
  const auto* const dataset = std::get_if<Dataset>(&source);
  if (dataset == nullptr) return {};
  const Catalogue& catalogue = *dataset->catalogue;
  if (catalogue.layout() == Layout::kShards) return {};
  std::map<RowsFile, std::uint64_t> met;
  for (std::uint64_t n = 0; n < catalogue.samples(); ++n) {
    const RowsFile kind = rows_file_of(catalogue.key(SampleId(n)));
    if (kind == RowsFile::kNone) return {};
    ++met[kind];
  }
  std::string_view files;
  if (met[RowsFile::kParquet] == catalogue.samples()) {
    files = "Parquet files";
  } else if (met[RowsFile::kParquet] == 0 && met[RowsFile::kIndex] != 0) {
    if (met[RowsFile::kMds] != 0) files = "shards of MDS";
    if (met[RowsFile::kLitData] != 0) files = "chunks of LitData";
  }
  if (files.empty()) return {};
  return invalid(
      "{} has {}, whose samples are their rows: Python's leat.Loader reads "
      "them; a program in C++ and `leat bench` would take each file for a "
      "sample",
      url, files);
}

}  // namespace leat
