// Translates a reader's options into the engine's.
#pragma once
#include "leat/api/reader_options.h"
#include "leat/base/result.h"
#include "leat/engine/loader_options.h"
#include "leat/engine/stores.h"

namespace leat {

/// Errors: kInvalidArgument as parse_ops()
Result<LoaderOptions> loader_options_of(const ReaderOptions& options);

StoreOptions store_options_of(const ReaderStorage& storage);

}  // namespace leat
