// leat index URL    Makes the catalogue of a dataset, and may publish it.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <utility>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/dataset/catalogue.h"
#include "leat/index/inventory.h"
#include "leat/store/url.h"

namespace leat {
namespace {

struct IndexFlags : CatalogueFlags {
  bool is_published = false;
  std::string refresh = "never";
  std::vector<std::string> classes;
  std::string inventory;
};

Result<OpenedCatalogue> publish(const OpenedStore& store, IndexOptions options,
                                CommandContext& context) {
  ProgressLine line(context);
  options.progress = [&](const IndexProgress& now) { line.show(now); };
  return publish_catalogue(*store.store, store.prefix, options, context.stop);
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

std::string last_part(const std::string& url) {
  return url.substr(url.rfind('/') + 1);
}

/// Opens what holds the manifest: a folder, or the bucket.
Result<OpenedStore> open_inventory(const IndexFlags& flags,
                                   CommandContext& context) {
  const std::size_t slash = flags.inventory.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : flags.inventory.substr(0, slash);
  return open_store(folder.empty() ? "/" : folder, flags.store.store_options(),
                    context.env, nullptr);
}

/// Empty for what is no bucket of S3.
std::string bucket_of(const OpenedStore& store) {
  const auto url = parse_url(store.url);
  return url && url->scheme == "s3" ? url->authority : "";
}

Result<void> run_index(const IndexFlags& flags, CommandContext& context) {
  LEAT_TRY(const OpenedStore store, open_store(flags, context));
  CatalogueOptions options;
  options.index.classes = flags.classes;
  LEAT_TRY(options.refresh, Refresh::parse(flags.refresh));
  std::optional<OpenedStore> inventory;
  if (!flags.inventory.empty()) {
    LEAT_TRY(inventory, open_inventory(flags, context));
    options.refresh = Refresh::always();
    options.index.objects = [&](const std::stop_token& stop) {
      return read_inventory(
          {.store = *inventory->store,
           .manifest_key =
               key_in_store(inventory->prefix, last_part(flags.inventory))},
          bucket_of(store), store.prefix, stop);
    };
  }
  LEAT_TRY(const OpenedCatalogue opened,
           flags.is_published ? publish(store, options.index, context)
                              : open_catalogue(store, options, context));
  if (options.refresh.is_always() && !flags.is_published) {
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
  app.add_flag("--publish", flags->is_published,
               "list anew and put the catalogue beside the data, for everyone");
  app.add_flag("--refresh{always}", flags->refresh,
               "list anew even if there is a catalogue; "
               "--refresh=if-older-than:1d if it is older (s, m, h, d)");
  app.add_option("--classes", flags->classes,
                 "what labels count through, instead of the sorted folders")
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
