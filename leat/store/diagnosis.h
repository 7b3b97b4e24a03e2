// The facts that a user should know about access to a store, found by asking
// it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace leat {

/// One check and its result. Holds no secret.
struct Diagnosis {
  enum class Level : std::uint8_t { kGood, kWarning, kBad };
  std::string check;  ///< "credentials"
  Level level = Level::kGood;
  std::string found;
  std::vector<std::string> details{};  ///< A line each.
  std::string remedy{};                ///< Empty if none is needed.
};

}  // namespace leat
