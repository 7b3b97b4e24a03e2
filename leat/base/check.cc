#include "leat/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace leat::internal {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(
      stderr,
      "leat: a bug of ours: `%s` does not hold at %s:%d. Please report "
      "this line and what was running.\n",
      condition, file, line);
  std::abort();
}

}  // namespace leat::internal
