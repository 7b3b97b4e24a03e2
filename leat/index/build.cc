#include "leat/index/build.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "leat/dataset/catalogue_writer.h"
#include "leat/index/folder_layout.h"
#include "leat/index/listing.h"
#include "leat/index/sample_groups.h"
#include "leat/index/scan_all.h"

namespace leat {
namespace {

/// Tells whoever listens, if anybody does.
class ProgressTeller {
 public:
  explicit ProgressTeller(const IndexOptions& options)
      : tell_(options.progress) {}

  IndexProgress now;

  void tell() const {
    if (tell_) tell_(now);
  }

 private:
  const std::function<void(const IndexProgress&)>& tell_;
};

EtagKind etag_kind(const Store& store, const IndexOptions& options) {
  return options.etags == EtagUse::kKeep ? etag_kind_of(store)
                                         : EtagKind::kNone;
}

ObjectView view_of(const ObjectInfo& object) {
  return {
      .key = object.key, .etag = object.etag, .size_bytes = object.size_bytes};
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
    const ObjectIndex index = writer.add_object(view_of(object));
    writer.add_sample(object.key);
    writer.set_range(data, {index, 0, object.size_bytes});
    if (has_labels) writer.set_int64(label, labels.label_of(object.key));
  }
  return std::move(writer).finish();
}

Result<Buffer> build_shards(Store& store, std::string_view prefix,
                            std::span<const ObjectInfo> shards,
                            const IndexOptions& options, EtagKind etags,
                            ProgressTeller& progress, std::stop_token stop) {
  CatalogueWriter writer(Layout::kShards, etags);
  writer.set_classes(options.classes);
  SampleGroups groups(writer);
  const auto take = [&](std::size_t index,
                        std::vector<TarMember> members) -> Result<void> {
    const ObjectInfo& shard = shards[index];
    const ObjectIndex object = writer.add_object(view_of(shard));
    if (auto added = groups.add_shard(object, members); !added) {
      return std::move(added).error().while_doing(fmt::format(
          "scanning {}", store.url_of(key_in_store(prefix, shard.key))));
    }
    progress.now.shards_done = index + 1;
    progress.now.samples = writer.samples();
    progress.tell();
    return {};
  };
  LEAT_TRY_VOID(
      scan_all(store, prefix, shards, options.threads, take, std::move(stop)));
  if (writer.samples() == 0) {
    return Error(ErrorCode::kNotFound,
                 "the shards hold no sample: no member is called NAME.FIELD");
  }
  return std::move(writer).finish();
}

Result<Buffer> build(Store& store, std::string_view prefix,
                     const IndexOptions& options, std::stop_token stop) {
  ProgressTeller progress(options);
  LEAT_TRY(const std::vector<ObjectInfo> objects,
           list_data(
               store, prefix,
               [&](std::uint64_t listed) {
                 progress.now.objects = listed;
                 progress.tell();
               },
               stop));
  LEAT_TRY(const Layout layout, layout_of(objects));
  const EtagKind etags = etag_kind(store, options);
  if (layout == Layout::kObjects) {
    return build_objects(objects, options, etags);
  }
  progress.now.shards_total = objects.size();
  return build_shards(store, prefix, objects, options, etags, progress,
                      std::move(stop));
}

}  // namespace

EtagKind etag_kind_of(const Store& store) {
  if (!store.traits().has_etags) return EtagKind::kNone;
  const std::string url = store.url_of("");
  if (url.starts_with("s3://") || url.starts_with("http://") ||
      url.starts_with("https://")) {
    return EtagKind::kHttp;
  }
  // A relative path has no scheme.
  if (url.starts_with("file://") || url.find("://") == std::string::npos) {
    return EtagKind::kFile;
  }
  return EtagKind::kOther;
}

bool etags_apply(const Catalogue& catalogue, const Store& store) {
  return catalogue.etag_kind() != EtagKind::kNone &&
         catalogue.etag_kind() == etag_kind_of(store);
}

Result<Buffer> build_catalogue(Store& store, std::string_view prefix,
                               const IndexOptions& options,
                               std::stop_token stop) {
  Result<Buffer> built = build(store, prefix, options, std::move(stop));
  if (!built) {
    return std::move(built).error().while_doing(
        fmt::format("indexing {}", store.url_of(prefix)));
  }
  return built;
}

}  // namespace leat
