#include "leat/engine/dataset.h"

#include <fmt/format.h>

#include <utility>

#include "leat/runtime/log.h"

namespace leat {

Result<Dataset> open_dataset(std::string_view url, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop) {
  LEAT_TRY(const OpenedStore opened, open_store(url, store, env, nullptr));
  LEAT_TRY(const OpenedCatalogue found,
           open_or_build(*opened.store, opened.prefix, opened.identity, options,
                         env, stop));
  if (!found.note.empty()) log_warning(found.note);
  if (found.catalogue->samples() == 0) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{} has no samples", url));
  }
  return Dataset{.url = std::string(url),
                 .store_options = store,
                 .catalogue = found.catalogue,
                 .catalogue_source = std::string(to_string(found.source))};
}

}  // namespace leat
