#!/usr/bin/env bash
# Builds the module for another interpreter and runs the Python tests with it: what
# is said of a version of Python, or of its build without the GIL, is what this ran.
#   test_python.sh PYTHON [PYTEST-ARGUMENT...]
set -euo pipefail
python=$(command -v "$1") || { echo "$1: no such interpreter" >&2; exit 2; }
shift
root=$(cd "$(dirname "$0")/.." && pwd)
tag=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
build=$root/build/$tag
mkdir -p "$build"

echo "$tag: installing what the tests import" >&2
identity() { "$1" -c 'import sys; print(sys.version, sys.base_prefix)' 2>&1; }
# Another release, or one of another folder, gives its modules the same names.
if [ "$(identity "$build/venv/bin/python")" != "$(identity "$python")" ] ||
    ! "$build/venv/bin/python" -m pip --version > /dev/null 2>&1; then
  rm -rf "$build/venv" "$build/CMakeCache.txt"  # The cache remembers another Python.
  "$python" -m venv "$build/venv"
fi
pip() { "$build/venv/bin/python" -m pip --disable-pip-version-check "$@" -qq --only-binary :all:; }
pip install numpy pillow pybind11 pytest
# In any version that there is for it; the tests of what there is not are skipped.
sed 's/[ =#].*//' "$root"/tools/{,test-}requirements.txt | while read -r package; do
  [ -z "$package" ] || pip install "$package" 2> /dev/null || echo "$tag: without $package" >&2
done

command -v ccache > /dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache \
  CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
cd "$root"
cmake --preset release -B "$build" -DLEAT_BUILD_BENCH=OFF \
  -DPython_EXECUTABLE="$build/venv/bin/python" \
  -Dpybind11_DIR="$("$build/venv/bin/python" -m pybind11 --cmakedir)" > /dev/null
ninja -C "$build" --quiet leat_python_tests_run

echo "$build/python" > "$("$build/venv/bin/python" -c \
  'import sysconfig; print(sysconfig.get_path("purelib"))')/leat-dev.pth"
export VIRTUAL_ENV=$build/venv PATH=$build/venv/bin:$build/bin:$PATH
exec python -m pytest -q "${@:-tests/python}"
