// leat ls URL    Lists the objects of a dataset: samples, bytes, key.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"

namespace leat {
namespace {

/// How many samples have bytes in each object.
std::vector<std::uint64_t> samples_by_object(const Catalogue& catalogue) {
  std::vector<std::uint64_t> samples(catalogue.objects());
  for (SampleId id; id.value < catalogue.samples(); ++id.value) {
    ObjectIndex last{ByteRange::kMissing};
    for (std::size_t field = 0; field < catalogue.fields().size(); ++field) {
      if (catalogue.fields()[field].kind != FieldKind::kBytes) continue;
      const ByteRange range = catalogue.range(field, id);
      if (range.is_missing() || range.object == last) continue;
      last = range.object;
      ++samples[last.value];
    }
  }
  return samples;
}

void print_object(const ObjectView& object, std::uint64_t samples, bool is_json,
                  std::ostream& out) {
  if (is_json) {
    out << dump_json({{"key", object.key},
                      {"bytes", object.size_bytes},
                      {"samples", samples}});
  } else {
    out << fmt::format("{:>10} {:>16}  {}", samples, object.size_bytes,
                       object.key);
  }
  out << '\n';
}

Result<void> run_ls(const CatalogueFlags& flags, CommandContext& context) {
  LEAT_TRY(const OpenedStore store, open_store(flags, context));
  LEAT_TRY(const CatalogueOptions options, flags.refresh.catalogue_options());
  LEAT_TRY(const OpenedCatalogue opened,
           open_catalogue(store, options, context));
  const Catalogue& catalogue = *opened.catalogue;
  const std::vector<std::uint64_t> samples = samples_by_object(catalogue);
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    if (context.stop.stop_requested() || !context.out) {
      return Error(ErrorCode::kCancelled, "ls was stopped");
    }
    print_object(catalogue.object({static_cast<std::uint32_t>(i)}), samples[i],
                 flags.is_json, context.out);
  }
  return {};
}

std::function<Result<void>(CommandContext&)> add_ls(CLI::App& app) {
  auto flags = std::make_shared<CatalogueFlags>();
  flags->add_to(app);
  app.footer(
      "Prints samples, bytes and key of each object; with --json one object a "
      "line.\nExample:\n  leat ls s3://bucket/train");
  return [flags](CommandContext& context) { return run_ls(*flags, context); };
}

}  // namespace

const Command kLsCommand{
    .name = "ls",
    .summary = "list the objects of a dataset: samples, bytes, key",
    .add = &add_ls,
};

}  // namespace leat
