#!/usr/bin/env bash
# Fails if leat/agent/page/ or leat/cli/page/ is not what dashboard/ builds. --write:
# puts it there.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root/dashboard"
# Installs what package-lock.json names, and no more. Not by `npm ci`: it wants
# entries for the optional packages of every other system, which not every
# registry has.
npm install --no-save --silent --no-audit --no-fund
npx --no-install tsc
if [ "${1-}" = --write ]; then
  npx --no-install vite build --logLevel warn
  exec npx --no-install vite build --logLevel warn --config vite.profile.config.ts
fi
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
npx --no-install vite build --logLevel warn --outDir "$made/agent"
npx --no-install vite build --logLevel warn --config vite.profile.config.ts --outDir "$made/cli"
for module in agent cli; do
  diff -rq "$made/$module" "$root/leat/$module/page" > /dev/null && continue
  echo "leat/$module/page/ is not what dashboard/ builds: tools/check_dashboard.sh --write, and commit it" >&2
  exit 1
done
