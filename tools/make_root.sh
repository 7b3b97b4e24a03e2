#!/usr/bin/env bash
# Makes a folder with a Debian in it; once a month, so that it has Debian's fixes.
#   make_root.sh FOLDER bare|unpacked SUITE ARCH PACKAGE...
# `bare` can be entered with chroot: Debian's smallest, and the packages. `unpacked` has
# the packages' files alone, to compile against. With fakeroot's rights no chroot is
# possible: run it as root.
set -euo pipefail
folder=$1 kind=$2 suite=$3 arch=$4
shift 4
case $kind in
  bare) variant=minbase ;;
  unpacked) variant=extract ;;
  *) echo "make_root.sh: bare or unpacked, not $kind" >&2; exit 2 ;;
esac
stamp="$kind $suite $arch $*"
[ "$(find "$folder.made" -mtime -30 -exec cat {} + 2> /dev/null)" = "$stamp" ] && exit
rm -rf --one-file-system "$folder" "$folder.made"
mkdir -p "$(dirname "$folder")"
packages=$(IFS=,; echo "$*")
echo "root: Debian $suite for $arch, $kind, into $folder (about a minute)" >&2
# A clock that the mirror's lists are too old for has been allowed here, or not.
valid=$(apt-config dump Acquire::Check-Valid-Until | tail -1)
mmdebstrap --quiet --variant="$variant" --architectures="$arch" --include="$packages" \
  ${valid:+--aptopt="${valid%;}"} "$suite" "$folder" http://deb.debian.org/debian
echo "$stamp" > "$folder.made"
