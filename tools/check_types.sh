#!/usr/bin/env bash
# Checks the package's types with mypy, and holds the stub of the engine against the module.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
cd "$root"
if ! python -c 'import mypy' 2> /dev/null; then
  echo "types are not checked: mypy is not installed (tools/test-requirements.txt has it, PyPI gives it)" >&2
  # A Python with pip got its packages from PyPI: on CI, mypy must be among them.
  [ -z "${CI-}" ] || ! python -m pip --version > /dev/null 2>&1 || exit 1
  exit 0
fi
python -m mypy
# pybind11 has a metaclass of its own, which no stub can name.
python -m mypy.stubtest leat._native --allowlist <(echo 'leat\._native\.[A-Z]\w+') \
  --ignore-unused-allowlist
python tools/check_stub.py leat._native python/leat/_native.pyi
