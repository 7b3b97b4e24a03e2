// A dataset by its URL: what it consists of and how to reach it.
#pragma once
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/env.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"
#include "leat/engine/stores.h"
#include "leat/index/open_catalogue.h"

namespace leat {

/// A URL and its catalogue. A value: cheap to copy, never changes.
struct Dataset {
  std::string url;  ///< Without credentials.
  StoreOptions store_options;
  std::shared_ptr<const Catalogue> catalogue;
  std::string catalogue_source;  ///< Where the catalogue was found, for people.
};

/// Opens the store at `url` and finds its catalogue, or lists and writes one.
/// Blocks.
///
/// Errors: those of parse_url, open_store and open_or_build; kInvalidArgument
/// if there is no sample at all.
Result<Dataset> open_dataset(std::string_view url, const StoreOptions& store,
                             const CatalogueOptions& options, const Env& env,
                             const std::stop_token& stop);

}  // namespace leat
