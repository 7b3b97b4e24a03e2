// The schemes of this folder, a row each, each defined in its own source.
#pragma once
#include "leat/engine/scheme.h"

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

}  // namespace leat
