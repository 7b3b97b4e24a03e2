// If-Match and its kin.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "leat/bucket/folder.h"
#include "leat/serve/http_service.h"

namespace leat {

/// The conditions of a request; empty where there is none.
struct Preconditions {
  std::string if_match;
  std::string if_none_match;
  std::string if_modified_since;
  std::string if_unmodified_since;

  static Preconditions of(const RequestHead& head);
};

enum class Verdict : std::uint8_t {
  kProceed,
  kNotModified,  ///< 304
  kFailed,       ///< 412
};

/// For a GET or HEAD of an object, in the order of precedence of RFC 9110.
Verdict check_read(const Preconditions& conditions, const ObjectState& state);

/// For a PUT or DELETE; `state` is null if there is no object.
Verdict check_write(const Preconditions& conditions, const ObjectState* state);

}  // namespace leat
