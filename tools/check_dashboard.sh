#!/usr/bin/env bash
# Fails if leat/agent/page/ is not what dashboard/ builds. --write: puts it there.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
page=$root/leat/agent/page
cd "$root/dashboard"
# What package-lock.json names, and no more. Not `npm ci`: it wants entries for the
# optional packages of every other system, which not every registry has.
npm install --no-save --silent --no-audit --no-fund
npx --no-install tsc
if [ "${1-}" = --write ]; then
  exec npx --no-install vite build --logLevel warn
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
npx --no-install vite build --logLevel warn --outDir "$made"
diff -rq "$made" "$page" > /dev/null && exit
echo "leat/agent/page/ is not what dashboard/ builds: tools/check_dashboard.sh --write, and commit it" >&2
exit 1
