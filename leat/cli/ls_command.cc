// leat ls URL    Lists what is at a place: samples, bytes, key.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "leat/base/errors.h"
#include "leat/cli/catalogue_flags.h"
#include "leat/cli/commands.h"
#include "leat/cli/terminal_text.h"

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

struct LsFlags {
  CatalogueFlags catalogue;
  bool is_plain = false;
};

Result<void> check_stopped(const CommandContext& context) {
  if (!context.stop.stop_requested()) return {};
  return Error(ErrorCode::kCancelled, "ls was stopped");
}

/// `samples` is null where nobody has looked.
void print_object(std::string_view key, std::uint64_t bytes,
                  const std::uint64_t* samples, bool is_json,
                  std::ostream& out) {
  if (is_json) {
    nlohmann::ordered_json line{{"key", key}, {"bytes", bytes}};
    if (samples != nullptr) line["samples"] = *samples;
    out << dump_json(line);
  } else {
    out << fmt::format("{:>10} {:>16}  {}",
                       samples == nullptr ? "-" : std::to_string(*samples),
                       bytes, for_terminal(key));
  }
  out << '\n';
}

Result<void> list_dataset(const Catalogue& catalogue, bool is_json,
                          CommandContext& context) {
  const std::vector<std::uint64_t> samples = samples_by_object(catalogue);
  for (std::uint64_t i = 0; i < catalogue.objects(); ++i) {
    LEAT_TRY_VOID(check_stopped(context));
    if (!context.out) return {};  // The program says why, where that is due.
    const ObjectView object = catalogue.object({static_cast<std::uint32_t>(i)});
    print_object(object.key, object.size_bytes, &samples[i], is_json,
                 context.out);
  }
  return {};
}

/// All whose keys begin with `prefix` as the store lists it, without the part
/// up to its last slash. Says how many there are.
Result<std::uint64_t> list_plainly(const OpenedStore& store, std::string prefix,
                                   bool is_json, CommandContext& context) {
  const std::size_t hidden = prefix.rfind('/') + 1;
  ListRequest request{.prefix = std::move(prefix)};
  std::uint64_t found = 0;
  do {
    LEAT_TRY(ListPage page, store.store->list(request, context.stop));
    for (const ObjectInfo& object : page.objects) {
      LEAT_TRY_VOID(check_stopped(context));
      if (!context.out) return found;
      print_object(object.key.substr(hidden), object.size_bytes, nullptr,
                   is_json, context.out);
      ++found;
    }
    request.resume = std::move(page.resume);
  } while (!request.resume.empty());
  return found;
}

/// For a URL that names one object.
Result<void> list_object(const CatalogueFlags& flags, CommandContext& context) {
  const auto [folder, name] = split_object_url(flags.url);
  LEAT_TRY(
      const OpenedStore store,
      open_store(folder, flags.store.store_options(), context.env, nullptr));
  LEAT_TRY(const ObjectInfo info,
           store.store->stat(key_in_store(store.prefix, name), context.stop));
  print_object(name, info.size_bytes, nullptr, flags.is_json, context.out);
  return {};
}

/// True for an error that says that this is not a dataset, and
/// nothing about the store.
bool is_no_dataset(const Error& error) {
  return error.code() == ErrorCode::kInvalidArgument ||
         error.code() == ErrorCode::kNotFound ||
         error.code() == ErrorCode::kCorrupt;
}

Result<void> list_anything(const OpenedStore& store, const LsFlags& flags,
                           std::optional<Error> why, CommandContext& context) {
  const bool is_json = flags.catalogue.is_json;
  const std::string folder = key_in_store(store.prefix, "");
  Result<std::uint64_t> found = list_plainly(store, folder, is_json, context);
  if (found && *found != 0) {
    if (why && context.out) {
      context.err << "leat: this is no dataset, so everything is listed ("
                  << lines_for_terminal(why->message()) << ")\n";
    }
    return {};
  }
  LEAT_TRY_VOID(check_stopped(context));
  if (list_object(flags.catalogue, context)) return {};
  if (found && folder.ends_with('/')) {  // The begin of names, then.
    found = list_plainly(store, folder.substr(0, folder.size() - 1), is_json,
                         context);
    if (found && *found != 0) return {};
  }
  if (why) return *std::move(why);
  if (!found) return std::move(found).error();
  return not_found("there is nothing at {}", store.url);
}

Result<void> run_ls(const LsFlags& flags, CommandContext& context) {
  if (!flags.is_plain && !flags.catalogue.is_whole_folder()) {
    Result<Dataset> dataset = open_selected(flags.catalogue, context);
    if (dataset) {
      return list_dataset(*dataset->catalogue, flags.catalogue.is_json,
                          context);
    }
    if (!is_no_dataset(dataset.error())) return std::move(dataset).error();
    if (list_object(flags.catalogue, context)) return {};
    return std::move(dataset).error();
  }
  Result<OpenedStore> store = open_store(flags.catalogue, context);
  if (!store) {
    if (list_object(flags.catalogue, context)) return {};
    return std::move(store).error();
  }
  LEAT_TRY(const CatalogueOptions options,
           flags.catalogue.refresh.catalogue_options());
  if (flags.is_plain) return list_anything(*store, flags, {}, context);
  Result<OpenedCatalogue> opened = open_catalogue(*store, options, context);
  if (opened) {
    return list_dataset(*opened->catalogue, flags.catalogue.is_json, context);
  }
  if (!is_no_dataset(opened.error())) return std::move(opened).error();
  return list_anything(*store, flags, std::move(opened).error(), context);
}

std::function<Result<void>(CommandContext&)> add_ls(CLI::App& app) {
  auto flags = std::make_shared<LsFlags>();
  flags->catalogue.add_to(app);
  flags->catalogue.add_selection_to(app);
  app.add_flag("--plain", flags->is_plain,
               "list all objects, hidden ones too, and look for no samples");
  app.footer(
      "Prints samples, bytes and key of each object of a dataset; of anything "
      "else,\nand with --plain, bytes and key of all that is there. With "
      "--json "
      "one object a line.\nExample:\n  leat ls s3://bucket/train");
  return [flags](CommandContext& context) { return run_ls(*flags, context); };
}

}  // namespace

const Command kLsCommand{
    .name = "ls",
    .summary = "list the samples or objects at a place: bytes and key",
    .add = &add_ls,
};

}  // namespace leat
