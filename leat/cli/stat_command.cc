// leat stat URL    Says what a dataset consists of.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"

namespace leat {
namespace {

/// The catalogue of what the flags choose, and the place's name for people.
Result<OpenedCatalogue> opened_by(const CatalogueFlags& flags, std::string& url,
                                  CommandContext& context) {
  if (flags.is_whole_folder()) {
    LEAT_TRY(const OpenedStore store, open_store(flags, context));
    LEAT_TRY(const CatalogueOptions options, flags.refresh.catalogue_options());
    url = store.url;
    return open_catalogue(store, options, context);
  }
  LEAT_TRY(const Dataset dataset, open_selected(flags, context));
  url = dataset.url;
  OpenedCatalogue opened;
  opened.catalogue = dataset.catalogue;
  opened.listed_at = dataset.listed_at;
  for (const CatalogueSource source :
       {CatalogueSource::kBuilt, CatalogueSource::kCache,
        CatalogueSource::kPublished}) {
    if (to_string(source) == dataset.catalogue_source) opened.source = source;
  }
  if (opened.source == CatalogueSource::kCache) opened.location = "kept";
  return opened;
}

Result<void> run_stat(const CatalogueFlags& flags, CommandContext& context) {
  std::string url;
  LEAT_TRY(const OpenedCatalogue opened, opened_by(flags, url, context));
  if (flags.is_json) {
    context.out << dump_json(describe(url, opened)) << '\n';
  } else {
    print_description(url, opened, context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_stat(CLI::App& app) {
  auto flags = std::make_shared<CatalogueFlags>();
  flags->add_to(app);
  flags->add_selection_to(app);
  app.footer("Example:\n  leat stat s3://bucket/train");
  return [flags](CommandContext& context) { return run_stat(*flags, context); };
}

}  // namespace

const Command kStatCommand{
    .name = "stat",
    .summary = "describe a dataset: samples, fields, classes",
    .add = &add_stat,
};

}  // namespace leat
