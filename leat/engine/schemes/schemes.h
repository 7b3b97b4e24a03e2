// The schemes of this folder, a row each, each defined in its own source.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "leat/engine/scheme.h"
#include "leat/store/cloud/provider.h"

#define LEAT_SCHEMES(ROW) \
  ROW(kS3Scheme)          \
  ROW(kGsScheme)          \
  ROW(kAzScheme)          \
  ROW(kAbfssScheme)       \
  ROW(kHfScheme)          \
  ROW(kHttpScheme)        \
  ROW(kHttpsScheme)       \
  ROW(kFileScheme)

namespace leat {

#define LEAT_DECLARE_SCHEME(name) extern const Scheme name;
LEAT_SCHEMES(LEAT_DECLARE_SCHEME)
#undef LEAT_DECLARE_SCHEME

/// The tools of places for credentials.
inline CredentialTools tools_for(const StoreOptions& options, const Env& env) {
  CredentialTools tools{.env = env};
  tools.ca_bundle = options.ca_bundle;
  return tools;
}

inline std::vector<Diagnosis> one_or_none(std::optional<Diagnosis> diagnosis) {
  std::vector<Diagnosis> found;
  if (diagnosis) found.push_back(*std::move(diagnosis));
  return found;
}

}  // namespace leat
