// The common part of `leat index`, `ls` and `stat`: a dataset's catalogue by
// its URL.
#pragma once
#include <CLI/CLI.hpp>

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/cli/command.h"
#include "leat/cli/loader_flags.h"
#include "leat/cli/progress_line.h"
#include "leat/engine/sources.h"
#include "leat/engine/stores.h"
#include "leat/index/open_catalogue.h"

namespace leat {

/// `--refresh`: whether a catalogue that is there will do.
struct RefreshFlag {
  std::string text = "auto";

  void add_to(CLI::App& app);
  /// Errors: as Refresh::parse().
  Result<CatalogueOptions> catalogue_options() const;
};

/// A place, what of it counts, how to reach it and how to print.
///
/// Lifetime: CLI11 writes into it while it parses, so it outlives the parse.
struct CatalogueFlags {
  std::string url;
  Selection selection;
  StoreFlags store;
  RefreshFlag refresh;
  bool is_json = false;

  void add_to(CLI::App& app);
  /// Adds the options that choose a part of a dataset.
  void add_selection_to(CLI::App& app);
  /// False for a pattern, one file, or a part of a folder.
  bool is_whole_folder() const;
};

/// The samples of a pattern, of one file, or of a part of a folder: those that
/// leat.Dataset has. Errors: as open_sources()
Result<Dataset> open_selected(const CatalogueFlags& flags,
                              CommandContext& context);

/// Opens the store. Errors: as open_store().
Result<OpenedStore> open_store(const CatalogueFlags& flags,
                               CommandContext& context);

/// Opens the catalogue or makes it, with progress on a terminal; notes go to
/// `context.err`. Errors: as open_or_build().
Result<OpenedCatalogue> open_catalogue(const OpenedStore& store,
                                       CatalogueOptions options,
                                       CommandContext& context);

/// Shows on `line` how far a catalogue is; `line` outlives what is returned.
std::function<void(const IndexProgress&)> shown_on(ProgressLine& line);

std::string_view to_string(Layout layout);

/// Keys need not be UTF-8, and JSON must be: invalid bytes are replaced.
std::string dump_json(const nlohmann::ordered_json& json);

/// The report of `leat stat`, as JSON and for people.
nlohmann::ordered_json describe(std::string_view url,
                                const OpenedCatalogue& opened);
void print_description(std::string_view url, const OpenedCatalogue& opened,
                       std::ostream& out);

}  // namespace leat
