#!/usr/bin/env bash
# Runs every fuzz target for a while, from the seeds that make_*_seeds writes and
# from what earlier runs found.
#   fuzz_all.sh BUILD-FOLDER SECONDS-EACH
set -euo pipefail
build=$(realpath "$1") seconds=$2
programs() { find "$build/fuzz" -maxdepth 1 -type f -executable -name "$1" | sort; }
mapfile -t makers < <(programs 'make_*_seeds')
for maker in "${makers[@]}"; do "$maker" "$build/seeds"; done
mapfile -t targets < <(programs '*_fuzz')
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz target was built" >&2; exit 1; }
found=()
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  mkdir -p "$build/corpus/$name" "$build/seeds/$name"
  echo "== $name"
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/$name-" "$build/corpus/$name" "$build/seeds/$name" 2>&1 | tail -n 8 ||
    found+=("$name")
done
[ ${#found[@]} -eq 0 ] || { echo "found something: ${found[*]}" >&2; exit 1; }
