// leat index URL    Makes the catalogue of a dataset, and may publish it.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/inventory_source.h"
#include "leat/index/snapshot.h"

namespace leat {
namespace {

struct IndexFlags : CatalogueFlags {
  bool is_published = false;
  bool is_snapshot = false;
  bool has_checksums = false;
  std::vector<std::string> classes;
  std::string inventory;
};

Result<OpenedCatalogue> publish(const OpenedStore& store, IndexOptions options,
                                CommandContext& context) {
  ProgressLine line(context);
  options.progress = shown_on(line);
  return publish_catalogue(*store.store, store.prefix, options, context.stop);
}

Result<OpenedCatalogue> snapshot(const OpenedStore& store, IndexOptions options,
                                 CommandContext& context) {
  ProgressLine line(context);
  options.progress = shown_on(line);
  return keep_snapshot(*store.store, store.prefix, options, context.stop);
}

/// A catalogue beside the data is found before the one that was just made.
void warn_of_published(const OpenedStore& store, CommandContext& context) {
  const std::string key = published_key(store.prefix);
  if (store.store->stat(key, context.stop)) {
    context.err << "leat: " << store.store->url_of(key)
                << " is found first and was left as it is; renew it with "
                   "--publish\n";
  }
}

Result<void> run_index(const IndexFlags& flags, CommandContext& context) {
  LEAT_TRY(const OpenedStore store, open_store(flags, context));
  LEAT_TRY(CatalogueOptions options, flags.refresh.catalogue_options());
  options.index.classes = flags.classes;
  options.index.has_checksums = flags.has_checksums;
  if (flags.has_checksums) options.refresh = Refresh::always();
  if (!flags.inventory.empty()) {
    options.refresh = Refresh::always();
    LEAT_TRY(options.index.objects,
             objects_of_inventory(flags.inventory, store,
                                  flags.store.store_options(), context.env));
  }
  LEAT_TRY(const OpenedCatalogue opened,
           flags.is_snapshot    ? snapshot(store, options.index, context)
           : flags.is_published ? publish(store, options.index, context)
                                : open_catalogue(store, options, context));
  if (options.refresh.is_always() && !flags.is_published &&
      !flags.is_snapshot) {
    warn_of_published(store, context);
  }
  if (flags.is_json) {
    context.out << dump_json(describe(store.url, opened)) << '\n';
  } else {
    print_description(store.url, opened, context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_index(CLI::App& app) {
  auto flags = std::make_shared<IndexFlags>();
  flags->add_to(app);
  CLI::Option* const publish = app.add_flag(
      "--publish", flags->is_published,
      "list anew and put the catalogue beside the data, for everyone");
  app.add_flag("--snapshot", flags->is_snapshot,
               "list anew and keep the catalogue beside the data under its "
               "time, for as_of=")
      ->excludes(publish);
  app.add_flag("--checksums", flags->has_checksums,
               "read all data, and keep a checksum of each sample, with which "
               "loaders compare what they read; implies --refresh");
  app.add_option("--classes", flags->classes,
                 "the classes that labels count, instead of the sorted folders")
      ->delimiter(',');
  app.add_option("--inventory", flags->inventory,
                 "the manifest.json of an S3 Inventory (CSV): nothing is "
                 "listed; implies --refresh");
  app.footer("Example:\n  leat index s3://bucket/train --publish");
  return
      [flags](CommandContext& context) { return run_index(*flags, context); };
}

}  // namespace

const Command kIndexCommand{
    .name = "index",
    .summary = "make the catalogue of a dataset",
    .add = &add_index,
};

}  // namespace leat
