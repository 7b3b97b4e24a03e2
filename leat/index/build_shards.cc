#include "leat/index/build_shards.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leat/dataset/catalogue_writer.h"
#include "leat/index/sample_groups.h"
#include "leat/index/scan_all.h"
#include "leat/index/shard_list.h"

namespace leat {
namespace {

/// Larger lists are passed over: a hundred thousand shards take about 20 MB.
constexpr std::uint64_t kMostListBytes = 32 << 20;

std::vector<ShardToScan> shards_to_scan(const SortedObjects& objects) {
  std::vector<ShardToScan> shards;
  shards.reserve(objects.data.size());
  for (const ObjectInfo& shard : objects.data) {
    shards.push_back({.shard = shard, .index = {}});
    if (const auto* index = member_index_of(shard, objects.companions)) {
      shards.back().index = *index;
    }
  }
  return shards;
}

/// Puts one shard after another into a catalogue.
class ShardCatalogue {
 public:
  ShardCatalogue(const IndexOptions& options, EtagKind etags)
      : writer_(Layout::kShards, etags) {
    writer_.set_classes(options.classes);
  }

  Result<void> add(const ShardToScan& shard, const ScannedShard& scanned) {
    const std::uint64_t before = writer_.samples();
    const ObjectIndex object =
        writer_.add_object({.key = shard.shard.key,
                            .etag = shard.shard.etag,
                            .size_bytes = shard.shard.size_bytes});
    LEAT_TRY_VOID(groups_.add_shard(object, scanned.members));
    samples_.push_back(writer_.samples() - before);
    if (shard.index) ++indexes_;
    if (!scanned.note.empty() && unfit_++ == 0) first_note_ = scanned.note;
    return {};
  }

  std::uint64_t samples() const { return writer_.samples(); }
  const std::vector<std::uint64_t>& samples_of_shards() const {
    return samples_;
  }

  /// Says that indexes were of no use; empty if all were.
  std::string note() const {
    if (unfit_ == 0) return "";
    return fmt::format(
        "{} of {} indexes beside the shards do not fit, so those shards were "
        "scanned: make them again or remove them; the first: {}",
        unfit_, indexes_, first_note_);
  }

  Result<Buffer> finish() && {
    if (writer_.samples() == 0) {
      return Error(ErrorCode::kNotFound,
                   "the shards hold no sample: no member is called "
                   "NAME.FIELD");
    }
    return std::move(writer_).finish();
  }

 private:
  CatalogueWriter writer_;
  SampleGroups groups_{writer_};
  std::vector<std::uint64_t> samples_;
  std::uint64_t indexes_ = 0;
  std::uint64_t unfit_ = 0;
  std::string first_note_;
};

/// What is wrong with this list of shards; empty if nothing, or if it is none.
Result<std::string> check_list(Store& store, const std::string& key,
                               const SortedObjects& objects,
                               const ShardCatalogue& catalogue,
                               const std::stop_token& stop) {
  const auto text = read_object(store, key, kMostListBytes, stop);
  if (!text && text.error().code() == ErrorCode::kCancelled) {
    return text.error();
  }
  if (!text) return text.error().message();
  const auto list = parse_shard_list(as_text(text->span()));
  if (!list) return list.error().message();
  if (!*list) return std::string();
  return differences(**list, objects.data, catalogue.samples_of_shards());
}

/// What is wrong with the lists of shards that lie beside them.
Result<std::string> check_lists(Store& store, std::string_view prefix,
                                const SortedObjects& objects,
                                const ShardCatalogue& catalogue,
                                const std::stop_token& stop) {
  for (const ObjectInfo& json : loose_jsons(objects)) {
    const std::string key = key_in_store(prefix, json.key);
    LEAT_TRY(const std::string wrong,
             check_list(store, key, objects, catalogue, stop));
    if (!wrong.empty()) {
      return fmt::format("{} does not fit, and the shards there were taken: {}",
                         store.url_of(key), wrong);
    }
  }
  return std::string();
}

}  // namespace

Result<BuiltCatalogue> build_shards(Store& store, std::string_view prefix,
                                    const SortedObjects& objects,
                                    const IndexOptions& options, EtagKind etags,
                                    IndexProgress now,
                                    const std::stop_token& stop) {
  const std::vector<ShardToScan> shards = shards_to_scan(objects);
  ShardCatalogue catalogue(options, etags);
  now.shards_total = shards.size();
  const auto take = [&](std::size_t index,
                        const ScannedShard& scanned) -> Result<void> {
    if (auto added = catalogue.add(shards[index], scanned); !added) {
      return std::move(added).error().while_doing(fmt::format(
          "scanning {}",
          store.url_of(key_in_store(prefix, shards[index].shard.key))));
    }
    now.shards_done = index + 1;
    now.samples = catalogue.samples();
    if (options.progress) options.progress(now);
    return {};
  };
  LEAT_TRY_VOID(scan_all(store, prefix, shards, options.threads, take, stop));
  BuiltCatalogue built;
  LEAT_TRY(std::string lists,
           check_lists(store, prefix, objects, catalogue, stop));
  built.note = catalogue.note();
  if (!built.note.empty() && !lists.empty()) built.note += "; ";
  built.note += lists;
  LEAT_TRY(built.bytes, std::move(catalogue).finish());
  return built;
}

}  // namespace leat
