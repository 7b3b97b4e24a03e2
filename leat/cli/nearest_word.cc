#include "leat/cli/nearest_word.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace leat {
namespace {

constexpr std::size_t kMostLetters = 64;  // No word of ours is so long.

std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> least(
      a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      least[i][j] =
          std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                    least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view typed,
                              std::span<const std::string_view> words) {
  if (typed.empty() || typed.size() > kMostLetters) return {};
  std::size_t least = 1 + typed.size() / 3 + 1;
  std::string_view nearest;
  for (const std::string_view word : words) {
    const std::size_t taken = slips(typed, word);
    if (taken >= least) continue;
    least = taken;
    nearest = word;
  }
  return nearest;
}

}  // namespace leat
