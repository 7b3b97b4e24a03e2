// The file that `leat simulate` runs: docs/reference/sharing.md.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/result.h"
#include "leat/tune/sharing_simulator.h"

namespace leat {

/// The same jobs, coming in one way.
struct NamedSharing {
  std::string name;  ///< The name of the arrivals.
  SharingSimulation simulation;
};

/// Reads a file's text: one entry for each [[arrivals]], with all jobs. `name`
/// stands in messages.
///
/// Errors:
///   kInvalidArgument  not TOML, a key that is unknown, missing or out of
///                     range: says which, where and what it may be
Result<std::vector<NamedSharing>> parse_jobs_file(std::string_view text,
                                                  const std::string& name);

}  // namespace leat
