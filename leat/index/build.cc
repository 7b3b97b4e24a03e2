#include "leat/index/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "leat/base/errors.h"
#include "leat/dataset/catalogue_writer.h"
#include "leat/index/build_shards.h"
#include "leat/index/checksums.h"
#include "leat/index/companions.h"
#include "leat/index/folder_layout.h"
#include "leat/index/listing.h"
#include "leat/index/stat_all.h"
#include "leat/store/url_scheme.h"

namespace leat {
namespace {

EtagKind etag_kind(const Store& store, const IndexOptions& options) {
  return options.etags == EtagUse::kKeep ? etag_kind_of(store)
                                         : EtagKind::kNone;
}

Result<Buffer> build_objects(std::span<const ObjectInfo> objects,
                             const IndexOptions& options, EtagKind etags) {
  LEAT_TRY(const Labels labels, Labels::make(objects, options.classes));
  CatalogueWriter writer(Layout::kObjects, etags);
  writer.set_classes(labels.classes());
  const std::size_t data = writer.add_field({"data", FieldKind::kBytes});
  const bool has_labels = !labels.classes().empty();
  const std::size_t label =
      has_labels ? writer.add_field({"label", FieldKind::kInt64}) : 0;
  for (const ObjectInfo& object : objects) {
    const ObjectIndex index =
        writer.add_object({.key = object.key,
                           .etag = object.etag,
                           .size_bytes = object.size_bytes});
    writer.add_sample(object.key);
    writer.set_range(data, {index, 0, object.size_bytes});
    if (has_labels) writer.set_int64(label, labels.label_of(object.key));
  }
  return std::move(writer).finish();
}

/// Up to this many objects are asked for one by one. For more, the
/// whole place is listed.
constexpr std::size_t kMostAskedFor = 1000;

Result<std::vector<ObjectInfo>> ask_for(
    Store& store, std::string_view prefix, std::vector<std::string> names,
    const IndexOptions& options,
    const std::function<void(std::uint64_t)>& progress,
    const std::stop_token& stop) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  LEAT_TRY(std::vector<ObjectInfo> objects,
           stat_all(
               store, prefix, names,
               [&](std::size_t name) {
                 return fmt::format("looking for '{}'", names[name]);
               },
               {.threads = options.threads, .progress = progress}, stop));
  for (std::size_t i = 0; i < names.size(); ++i) objects[i].key = names[i];
  return objects;
}

Result<BuiltCatalogue> build(Store& store, std::string_view prefix,
                             const IndexOptions& options,
                             const std::stop_token& stop) {
  IndexProgress now;
  LEAT_TRY(std::vector<ObjectInfo> listed,
           find_objects(store, prefix, options, now, stop));
  now.objects = listed.size();
  LEAT_TRY(const SortedObjects objects, sort_objects(std::move(listed)));
  const EtagKind etags = etag_kind(store, options);
  if (objects.layout == Layout::kShards) {
    return build_shards(store, prefix, objects, options, etags, now, stop);
  }
  LEAT_TRY(Buffer bytes, build_objects(objects.data, options, etags));
  return BuiltCatalogue{.bytes = std::move(bytes), .note = ""};
}

}  // namespace

Result<std::vector<ObjectInfo>> find_objects(Store& store,
                                             std::string_view prefix,
                                             const IndexOptions& options,
                                             IndexProgress& now,
                                             const std::stop_token& stop) {
  const Selection& selection = options.selection;
  const std::function<void(std::uint64_t)> progress = [&](std::uint64_t found) {
    now.objects = found;
    if (options.progress) options.progress(now);
  };
  const bool can_list = store.traits().can_list;
  std::vector<std::string> names = selection.names();
  if (options.objects) {
    LEAT_TRY(std::vector<ObjectInfo> given, options.objects(stop));
    return data_among(std::move(given), store.url_of(prefix), selection);
  }
  if (!names.empty() && (names.size() <= kMostAskedFor || !can_list)) {
    LEAT_TRY(std::vector<ObjectInfo> named,
             ask_for(store, prefix, std::move(names), options, progress, stop));
    return data_among(std::move(named), store.url_of(prefix), selection);
  }
  if (!can_list && !selection.is_usual()) {
    return invalid(
        "it cannot be listed, so wildcards, include=, exclude= and extensions= "
        "have nothing to choose from: name the objects instead, as in "
        "'shard-{0000..0128}.tar', or use s3:// or a folder");
  }
  return list_data(store, prefix, progress, stop, selection);
}

EtagKind etag_kind_of(const Store& store) {
  if (!store.traits().has_etags) return EtagKind::kNone;
  const UrlScheme* const scheme = scheme_of_url(store.url_of(""));
  if (scheme == nullptr) return EtagKind::kOther;
  switch (scheme->etags) {
    case EtagMaker::kHttpServer:
      return EtagKind::kHttp;
    case EtagMaker::kFileSystem:
      return EtagKind::kFile;
    case EtagMaker::kAnother:
      break;
  }
  return EtagKind::kOther;
}

bool etags_apply(const Catalogue& catalogue, const Store& store) {
  return catalogue.etag_kind() != EtagKind::kNone &&
         catalogue.etag_kind() == etag_kind_of(store);
}

Result<BuiltCatalogue> build_catalogue(Store& store, std::string_view prefix,
                                       const IndexOptions& options,
                                       const std::stop_token& stop) {
  Result<BuiltCatalogue> built = build(store, prefix, options, stop);
  if (built && options.has_checksums) {
    auto bytes =
        add_checksums(store, prefix, std::move(built->bytes), options, stop);
    if (bytes) {
      built->bytes = *std::move(bytes);
    } else {
      built = std::move(bytes).error();
    }
  }
  if (!built) {
    return std::move(built).error().while_doing(
        fmt::format("indexing {}", store.url_of(prefix)));
  }
  return built;
}

}  // namespace leat
