#!/usr/bin/env bash
# Runs every benchmark of bench/ with --quick: does it work? Never: how fast?
# And each micro benchmark of a build, just long enough.
#   bench_smoke.sh BUILD-FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/.."
for script in bench/*_bench.py; do
  name=$(basename "$script" _bench.py)
  echo "== $name"
  python bench/run.py "$name" --quick
done
find "$build/bench" -maxdepth 1 -type f -executable -name '*_bench' 2> /dev/null | sort |
  while read -r micro; do
    echo "== $(basename "$micro")"
    "$micro" --benchmark_min_time=0.01
  done
