#!/bin/bash
# Runs a command with LEAT_RGW_URL naming a fresh gateway, then ends the
# gateway. Exits 77, which ctest reports as skipped, if Ceph is not installed.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
dir=$(mktemp -d)
trap '"$here/stop.sh" "$dir"; sleep 0.2; rm -rf "$dir"' EXIT

is_free() { ! (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }
port=0
for _ in $(seq 50); do
  port=$((20000 + RANDOM % 12000))
  is_free "$port" && is_free $((port + 1)) && is_free $((port + 2)) && break
done

status=0
LEAT_RGW_URL=$("$here/start.sh" "$dir" "$port") || status=$?
if [ "$status" -ne 0 ]; then
  [ "$status" -eq 77 ] || tail -n 20 "$dir"/log/*.log >&2
  exit "$status"
fi
export LEAT_RGW_URL
"$@"
