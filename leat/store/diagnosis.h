// The facts about access to a store that a user should know, found out by
// asking the store.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace leat {

/// One thing that was looked at. Holds no secret.
struct Diagnosis {
  enum class Level : std::uint8_t { kGood, kWarning, kBad };
  std::string check;  ///< "credentials"
  Level level = Level::kGood;
  std::string found;
  std::vector<std::string> details{};  ///< A line each.
  std::string remedy{};                ///< Empty where nothing needs one.
};

}  // namespace leat
