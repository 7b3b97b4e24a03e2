#!/usr/bin/env bash
# clang-tidy and clang's thread-safety analysis, on the sources that differ from
# the main branch (with the last commit where that is checked out), or on all.
#   check_tidy.sh BUILD-FOLDER [--all]
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/.."
sources() {
  if [ "${1-}" = --all ]; then
    git ls-files 'leat/*.cc'
    return
  fi
  local base
  base=$(git merge-base HEAD origin/main 2> /dev/null || git rev-parse HEAD)
  [ "$base" != "$(git rev-parse HEAD)" ] || base=$(git rev-parse -q --verify HEAD~1 || echo HEAD)
  { git diff --name-only --diff-filter=d "$base" -- 'leat/*.cc'
    git ls-files --others --exclude-standard 'leat/*.cc'; } | sort -u
}
sources "${2-}" | xargs -r -n 1 -P "$(nproc)" clang-tidy-14 --quiet -p "$build" \
  --extra-arg=-Wthread-safety --extra-arg=-Wno-unknown-warning-option
