#!/usr/bin/env bash
# Makes the wheels that users install, one for each Python: compiles the engine once and
# the bindings for each, puts the shared libraries into the wheel (auditwheel) and their
# licences, checks what is in it, and trains the tutorial's network with it where nothing
# else is.
#   wheel.sh OUT-FOLDER [--slim] [--arch x86_64|aarch64] PYTHON...
# PYTHON is an interpreter of this machine, or debian:SUITE, the python3 of that Debian.
# A wheel for another processor is compiled by Debian's cross compiler against Debian
# 12's libraries and run by qemu-user. --slim leaves out the command, and all protocols of
# libcurl but HTTP: for a cloud function; for this machine's processor alone.
set -euo pipefail
out=$(realpath -m "$1")
shift
root=$(cd "$(dirname "$0")/.." && pwd)
arch=$(uname -m)
slim=
if [ "${1-}" = --slim ]; then
  slim=--slim
  shift
fi
if [ "${1-}" = --arch ]; then
  arch=$2
  shift 2
fi
[ -z "$slim" ] || [ "$arch" = "$(uname -m)" ] ||
  { echo "wheel: --slim is for this machine's processor, $(uname -m)" >&2; exit 2; }
case $arch in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) echo "wheel: for x86_64 or aarch64, not $arch" >&2; exit 2 ;;
esac
triplet=$arch-linux-gnu
roots=$root/build/roots
build=$root/build/wheel-$arch
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LEAT_OF_BUILD=$build/bin/leat  # Serves a bucket for slim wheels, which have no command.
say() { echo "wheel: $*" >&2; }

# --- tools and libraries ------------------------------------------------------

make_tools() {  # In $tools, apart from the project's .venv
  tools=$root/build/wheel-tools
  "$tools/bin/python" -m pip --version > /dev/null 2>&1 || /usr/bin/python3 -m venv --clear "$tools"
  "$tools/bin/python" -m pip install -qq --disable-pip-version-check \
    -r "$root/tools/wheel-requirements.txt"
  PATH=$tools/bin:$PATH
}

emulate() {  # Has the kernel run the other processor's programs by qemu-user
  [ "$arch" = "$(uname -m)" ] || [ -e "/proc/sys/fs/binfmt_misc/qemu-$arch" ] && return
  [ -e /proc/sys/fs/binfmt_misc/register ] ||
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  cat "/usr/lib/binfmt.d/qemu-$arch.conf" > /proc/sys/fs/binfmt_misc/register
}

make_sysroot() {  # The libraries that the other processor's engine is linked with, in $cross
  cross=()
  [ "$arch" != "$(uname -m)" ] || return 0
  local libraries
  libraries=$(sed -n 's/^\(lib[a-z0-9.+-]*-dev\|nlohmann-json3-dev\).*/\1/p' "$root/tools/debian-packages.txt")
  # shellcheck disable=SC2086
  "$root/tools/make_root.sh" "$roots/sysroot-$arch" unpacked bookworm "$debian" libc6-dev $libraries
  cross=(--toolchain "$root/cmake/$triplet.cmake" -DLEAT_SYSROOT="$roots/sysroot-$arch")
}

# --- one wheel ------------------------------------------------------------------

headers_of() {  # PYTHON: its headers into $scratch/headers, its modules' end into $suffix
  local from version
  rm -rf "$scratch/headers"
  mkdir "$scratch/headers"
  case $1 in
    debian:*)
      from=$roots/headers-${1#debian:}-$arch
      "$root/tools/make_root.sh" "$from" unpacked "${1#debian:}" "$debian" libpython3-dev
      version=$(basename "$(readlink -f "$from"/usr/include/python3.*[0-9])")
      cp -r "$from/usr/include/$version/." "$scratch/headers"
      # Debian's chooses one of the processors', which lie elsewhere.
      cp "$from/usr/include/$triplet/$version/pyconfig.h" "$scratch/headers"
      version=${version#python}
      suffix=.cpython-${version/./}-$triplet.so ;;
    *)
      [ "$arch" = "$(uname -m)" ] || { say "$1 is no Python of $arch: say debian:SUITE"; exit 2; }
      cp -r "$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')/." "$scratch/headers"
      suffix=$("$1" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))') ;;
  esac
}

compile() {  # The module for $suffix; the engine too, the first time
  local headers=$build/headers$suffix
  mkdir -p "$build"
  if ! diff -rq "$scratch/headers" "$headers" > /dev/null 2>&1; then
    rm -rf "$headers"
    cp -r "$scratch/headers" "$headers"
  fi
  cmake --preset release -S "$root" -B "$build" "${cross[@]}" -DLEAT_BUILD_BENCH=OFF \
    -DLEAT_BUILD_TESTS=OFF -DLEAT_PYTHON_HEADERS="$headers" -DLEAT_PYTHON_SUFFIX="$suffix" \
    -Dpybind11_DIR="$(python -m pybind11 --cmakedir)" > /dev/null
  cmake --build "$build" --target leat _native -j "$(nproc)"
  [ -z "$slim" ] || "$root/tools/make_curl.sh" "$build/curl"
}

pack() {  # The wheel with all that it needs, as $wheel
  local strip=strip libraries= notices=/
  rm -rf "$scratch/raw" "$scratch/whole" "$scratch/build"
  mkdir -p "$scratch/raw" "$scratch/whole" "$scratch/build/bin" "$scratch/build/python/leat"
  if [ ${#cross[@]} -gt 0 ]; then
    strip=$triplet-strip
    notices=$roots/sysroot-$arch
    libraries=$roots/sysroot-$arch/usr/lib/$triplet:$roots/sysroot-$arch/lib/$triplet
  fi
  if [ -n "$slim" ]; then  # In front of Debian's libcurl.
    mkdir "$scratch/build/lib"
    "$strip" -o "$scratch/build/lib/libcurl.so.4" "$build/curl/lib/libcurl.so.4"
    libraries=$scratch/build/lib:$libraries
  fi
  "$strip" -o "$scratch/build/bin/leat" "$build/bin/leat"
  "$strip" -o "$scratch/build/python/leat/_native$suffix" "$build/python/leat/_native$suffix"
  python "$root/tools/pack_wheel.py" ${slim:+"$slim"} "$scratch/build" "$suffix" "$arch" "$scratch/raw" > "$scratch/log" 2>&1 &&
    LD_LIBRARY_PATH=$libraries python -m auditwheel repair --plat auto \
      --wheel-dir "$scratch/whole" "$scratch"/raw/*.whl >> "$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; exit 1; }
  wheel=$(echo "$scratch"/whole/*.whl)
  python "$root/tools/add_licenses.py" "$wheel" "$notices"
  python "$root/tools/check_wheel.py" "$wheel"
}

# --- trying it ------------------------------------------------------------------

fetch_dependencies() {  # numpy for $suffix, into $dependencies
  local version platform platforms=()
  version=$(sed 's/^\.cpython-\([0-9]\)\([0-9]*\)t\?-.*/\1.\2/' <<< "$suffix")
  dependencies=$build/dependencies$suffix
  for platform in 2_17 2_27 2_28 2_34; do
    platforms+=(--platform "manylinux_${platform}_$arch")
  done
  python -m pip download -qq --disable-pip-version-check --only-binary :all: --no-deps \
    --python-version "$version" "${platforms[@]}" --dest "$dependencies" numpy
}

try_it() {  # PYTHON
  local own
  case $1 in
    debian:*)
      emulate
      "$root/tools/make_root.sh" "$roots/bare-${1#debian:}-$arch" bare "${1#debian:}" "$debian" python3 python3-venv
      say "trying it in a bare Debian ${1#debian:}"
      "$root/tools/try_wheel.sh" "$wheel" "$dependencies" "$data" "$roots/bare-${1#debian:}-$arch" ;;
    *)
      own=$("$1" -c 'import sys; print(sys.base_prefix)')
      if [ "$(id -u)" = 0 ] && [ "$own" != /usr ]; then
        "$root/tools/make_root.sh" "$roots/bare-bookworm-$arch" bare bookworm "$debian" python3 python3-venv
        say "trying it in a bare Debian 12, with $own lent to it"
        "$root/tools/try_wheel.sh" "$wheel" "$dependencies" "$data" "$roots/bare-bookworm-$arch" "$1"
      else
        say "trying it in a venv of this machine"
        "$root/tools/try_wheel.sh" "$wheel" "$dependencies" "$data" here "$1"
      fi ;;
  esac
}

command -v ccache > /dev/null && export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache \
  CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
data=$root/build/demo-data/v1
[ -d "$data/digits" ] || (cd "$root/examples" && python digits.py > /dev/null)  # By the .venv's Python
mkdir -p "$scratch/data" "$out"
cp -r "$data/digits" "$scratch/data/digits"
data=$scratch/data
make_tools
make_sysroot
for python in "$@"; do
  [ "${python#debian:}" != "$python" ] || python=$(realpath -s "$(command -v "$python")")
  headers_of "$python"
  say "compiling for $suffix"
  compile
  pack
  fetch_dependencies
  try_it "$python"
  mv "$wheel" "$out"
  say "$out/$(basename "$wheel"), $(du -h "$out/$(basename "$wheel")" | cut -f1)"
done
