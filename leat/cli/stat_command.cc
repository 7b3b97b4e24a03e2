// leat stat URL    Says what a dataset consists of.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"

namespace leat {
namespace {

Result<void> run_stat(const CatalogueFlags& flags, CommandContext& context) {
  LEAT_TRY(const OpenedStore store, open_store(flags, context));
  LEAT_TRY(const CatalogueOptions options, flags.refresh.catalogue_options());
  LEAT_TRY(const OpenedCatalogue opened,
           open_catalogue(store, options, context));
  if (flags.is_json) {
    context.out << dump_json(describe(store.url, opened)) << '\n';
  } else {
    print_description(store.url, opened, context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_stat(CLI::App& app) {
  auto flags = std::make_shared<CatalogueFlags>();
  flags->add_to(app);
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
