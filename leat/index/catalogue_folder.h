// The folder in which this machine keeps catalogues.
#pragma once
#include <optional>
#include <string>

#include "leat/base/env.h"

namespace leat {

/// The folder below which catalogues are kept: that of user_cache_folder(). If
/// the environment does not name it by LEAT_CACHE_DIR and it cannot be written,
/// or in a function of AWS Lambda, which has no home: leat-UID below TMPDIR,
/// else /tmp, made for this user alone. The log says so once. Nullopt if there
/// is none, or others can write it. Blocks.
std::optional<std::string> catalogue_folder(const Env& env);

}  // namespace leat
