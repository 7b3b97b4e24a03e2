#include "leat/cli/catalogue_flags.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>
#include <span>
#include <utility>

#include "leat/base/clock.h"
#include "leat/base/units.h"
#include "leat/cli/terminal_text.h"
#include "leat/index/freshness.h"

namespace leat {
namespace {

constexpr std::size_t kMostClassesShown = 10;

std::string classes_for_people(const std::vector<std::string>& classes) {
  std::string text;
  for (std::size_t i = 0; i < classes.size() && i < kMostClassesShown; ++i) {
    text += (i == 0 ? " (" : ", ") + classes[i];
  }
  if (classes.size() > kMostClassesShown) text += ", ...";
  if (!classes.empty()) text += ")";
  return fmt::format("{}{}", classes.size(), text);
}

std::string fields_for_people(const std::vector<FieldSpec>& fields) {
  std::string text;
  for (const FieldSpec& field : fields) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} ({})", field.name, to_string(field.kind));
  }
  return text;
}

}  // namespace

void RefreshFlag::add_to(CLI::App& app) {
  app.add_flag("--refresh{always}", text,
               "list anew even if there is a catalogue; "
               "--refresh=if-older-than:1d if it is older (s, m, h, d), "
               "--refresh=never not at all; without it, if a cheap look at "
               "the store shows another object");
}

Result<CatalogueOptions> RefreshFlag::catalogue_options() const {
  CatalogueOptions options;
  LEAT_TRY(options.refresh, Refresh::parse(text));
  return options;
}

void CatalogueFlags::add_to(CLI::App& app) {
  app.add_option("URL", url,
                 "s3://, gs://, az://, http(s)://, file:// or a path")
      ->required();
  store.add_to(app);
  refresh.add_to(app);
  app.add_flag("--json", is_json, "print JSON");
}

void CatalogueFlags::add_selection_to(CLI::App& app) {
  app.add_option("--include", selection.include,
                 "patterns of names that count alone");
  app.add_option("--exclude", selection.exclude,
                 "patterns of names that do not count");
  app.add_option("--extensions", selection.extensions,
                 "ends of names that count, such as jpg; \"*\" for all");
}

bool CatalogueFlags::is_whole_folder() const {
  return selection.is_usual() && is_plain_place(url);
}

Result<Dataset> open_selected(const CatalogueFlags& flags,
                              CommandContext& context) {
  LEAT_TRY(CatalogueOptions options, flags.refresh.catalogue_options());
  ProgressLine line(context);
  options.index.progress = shown_on(line);
  return open_sources(std::span(&flags.url, 1), flags.selection,
                      flags.store.store_options(), options, context.env,
                      context.stop);
}

Result<OpenedStore> open_store(const CatalogueFlags& flags,
                               CommandContext& context) {
  return open_store(flags.url, flags.store.store_options(), context.env,
                    nullptr);
}

Result<OpenedCatalogue> open_catalogue(const OpenedStore& store,
                                       CatalogueOptions options,
                                       CommandContext& context) {
  Result<OpenedCatalogue> opened = [&] {
    ProgressLine line(context);
    options.index.progress = shown_on(line);
    return open_or_build(*store.store, store.prefix, store.identity, options,
                         context.env, context.stop);
  }();
  if (opened && !opened->note.empty()) {
    context.err << "leat: " << lines_for_terminal(opened->note) << '\n';
  }
  return opened;
}

std::function<void(const IndexProgress&)> shown_on(ProgressLine& line) {
  return [&line](const IndexProgress& now) {
    if (now.bytes_total != 0) {
      line.show({.what = "reading",
                 .done = static_cast<double>(now.bytes_read) / 1e6,
                 .all = static_cast<double>(now.bytes_total) / 1e6,
                 .unit = "MB"});
    } else if (now.shards_total == 0) {
      line.show({.what = "listing",
                 .done = static_cast<double>(now.objects),
                 .unit = "objects"});
    } else {
      line.show({.what = "scanning",
                 .done = static_cast<double>(now.shards_done),
                 .all = static_cast<double>(now.shards_total),
                 .unit = "shards"});
    }
  };
}

std::string_view to_string(Layout layout) {
  return layout == Layout::kObjects ? "objects" : "shards";
}

std::string dump_json(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

namespace {

/// Unix time; null if nobody knows.
nlohmann::ordered_json listed_at(const OpenedCatalogue& opened) {
  if (opened.listed_at == std::chrono::sys_seconds()) return nullptr;
  return opened.listed_at.time_since_epoch().count();
}

}  // namespace

nlohmann::ordered_json describe(std::string_view url,
                                const OpenedCatalogue& opened) {
  const Catalogue& catalogue = *opened.catalogue;
  nlohmann::ordered_json fields = nlohmann::ordered_json::array();
  for (const FieldSpec& field : catalogue.fields()) {
    fields.push_back({{"name", field.name}, {"kind", to_string(field.kind)}});
  }
  return {{"url", url},
          {"samples", catalogue.samples()},
          {"objects", catalogue.objects()},
          {"bytes", catalogue.total_bytes()},
          {"layout", to_string(catalogue.layout())},
          {"fields", std::move(fields)},
          {"classes", catalogue.classes()},
          {"digest", catalogue.digest().hex()},
          {"checksums", catalogue.has_checksums()},
          {"catalogue",
           {{"source", to_string(opened.source)},
            {"location", opened.location},
            {"listed_at", listed_at(opened)}}}};
}

void print_description(std::string_view url, const OpenedCatalogue& opened,
                       std::ostream& out) {
  const Catalogue& catalogue = *opened.catalogue;
  const auto row = [&](std::string_view name, std::string_view value) {
    out << fmt::format("{:<10} {}\n", name, for_terminal(value));
  };
  row("url", url);
  row("samples", fmt::format("{}", catalogue.samples()));
  row("objects", fmt::format("{}", catalogue.objects()));
  row("bytes", fmt::format("{} ({})", catalogue.total_bytes(),
                           format_bytes(catalogue.total_bytes())));
  row("layout", to_string(catalogue.layout()));
  row("fields", fields_for_people(catalogue.fields()));
  row("classes", classes_for_people(catalogue.classes()));
  row("digest", catalogue.digest().hex());
  if (catalogue.has_checksums()) row("checksums", "CRC32C of each sample");
  row("catalogue",
      fmt::format("{} ({}, {})",
                  opened.location.empty() ? "in memory" : opened.location,
                  to_string(opened.source),
                  age_for_people(opened.listed_at,
                                 std::chrono::floor<std::chrono::seconds>(
                                     std::chrono::system_clock::now()))));
}

}  // namespace leat
