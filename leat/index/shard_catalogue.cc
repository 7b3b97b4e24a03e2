#include "leat/index/shard_catalogue.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "leat/base/errors.h"
#include "leat/index/shard_list.h"

namespace leat {
namespace {

/// Larger lists are passed over: a hundred thousand shards take about 20 MB.
constexpr std::uint64_t kMostListBytes = 32 << 20;

CatalogueWriter writer_of(const std::vector<std::string>& classes,
                          EtagKind etags,
                          const std::vector<FieldSpec>& fields) {
  CatalogueWriter writer(Layout::kShards, etags);
  writer.set_classes(classes);
  for (const FieldSpec& field : fields) writer.add_field(field);
  return writer;
}

/// Describes the fault in this list of shards; empty if it has none, or is no
/// list.
Result<std::string> check_list(Store& store, const std::string& key,
                               const SortedObjects& objects,
                               std::span<const std::uint64_t> samples,
                               const std::stop_token& stop) {
  const auto text = read_object(store, key, kMostListBytes, stop);
  if (!text && text.error().code() == ErrorCode::kCancelled) {
    return text.error();
  }
  if (!text) return text.error().message();
  const auto list = parse_shard_list(as_text(text->span()));
  if (!list) return list.error().message();
  if (!*list) return std::string();
  return differences(**list, objects.data, samples);
}

/// Describes the faults in the lists of shards that lie beside them.
Result<std::string> check_lists(Store& store, std::string_view prefix,
                                const SortedObjects& objects,
                                std::span<const std::uint64_t> samples,
                                const std::stop_token& stop) {
  for (const ObjectInfo& json : loose_jsons(objects)) {
    const std::string key = key_in_store(prefix, json.key);
    LEAT_TRY(const std::string wrong,
             check_list(store, key, objects, samples, stop));
    if (!wrong.empty()) {
      return fmt::format("{} does not fit, and the shards there were taken: {}",
                         store.url_of(key), wrong);
    }
  }
  return std::string();
}

}  // namespace

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

ShardCatalogue::ShardCatalogue(const std::vector<std::string>& classes,
                               EtagKind etags,
                               const std::vector<FieldSpec>& fields)
    : writer_(writer_of(classes, etags, fields)), groups_(writer_) {}

Result<void> ShardCatalogue::add(const ShardToScan& shard,
                                 const ScannedShard& scanned) {
  const std::uint64_t before = writer_.samples();
  const ObjectIndex object =
      writer_.add_object({.key = shard.shard.key,
                          .etag = shard.shard.etag,
                          .size_bytes = shard.shard.size_bytes});
  LEAT_TRY_VOID(groups_.add_shard(object, shard.shard.key, scanned.members));
  samples_.push_back(writer_.samples() - before);
  if (shard.index) ++indexes_;
  if (!scanned.note.empty() && unfit_++ == 0) first_note_ = scanned.note;
  return {};
}

/// Says that indexes were of no use; empty if all were.
std::string ShardCatalogue::note() const {
  if (unfit_ == 0) return "";
  return fmt::format(
      "{} of {} indexes beside the shards do not fit, so those shards were "
      "scanned: make them again or remove them; the first: {}",
      unfit_, indexes_, first_note_);
}

Result<BuiltCatalogue> ShardCatalogue::finish(Store& store,
                                              std::string_view prefix,
                                              const SortedObjects& objects,
                                              const std::stop_token& stop) && {
  BuiltCatalogue built;
  LEAT_TRY(std::string lists,
           check_lists(store, prefix, objects, samples_, stop));
  built.note = note();
  if (!built.note.empty() && !lists.empty()) built.note += "; ";
  built.note += lists;
  LEAT_TRY(built.bytes, std::move(*this).finish());
  return built;
}

Result<std::shared_ptr<const Catalogue>> ShardCatalogue::open() && {
  LEAT_TRY(Buffer bytes, std::move(*this).finish());
  LEAT_TRY(Catalogue catalogue, Catalogue::open(std::move(bytes)));
  return std::make_shared<const Catalogue>(std::move(catalogue));
}

Result<Buffer> ShardCatalogue::finish() && {
  if (writer_.samples() == 0) {
    return not_found(
        "the shards hold no sample: no member is called NAME.FIELD, and there "
        "is no record");
  }
  return std::move(writer_).finish();
}

}  // namespace leat
