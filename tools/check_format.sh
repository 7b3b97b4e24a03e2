#!/usr/bin/env bash
# Fails if a C++ file is not as clang-format 14 would write it.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z --cached --others --exclude-standard '*.h' '*.cc' |
  while IFS= read -r -d '' file; do [ -f "$file" ] && printf '%s\0' "$file"; done |
  xargs -0 -r clang-format-14 --dry-run -Werror
