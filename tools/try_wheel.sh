#!/usr/bin/env bash
# Installs a wheel where nothing else is, without a network, and runs try_wheel.py there.
#   try_wheel.sh WHEEL WHEELS DATA here PYTHON     in a venv of an interpreter of this machine
#   try_wheel.sh WHEEL WHEELS DATA ROOT [PYTHON]   in a Debian root, by chroot; PYTHON's own
#                                                  folder is lent to the root, else its python3 is it
# WHEELS holds the wheels of what it depends on, DATA the digits.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$1 wheels=$2 data=$3 where=$4 python=${5:-python3}

stage=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$stage"' EXIT
cp "$wheel" "$here/try_wheel.py" "$stage"
cp -r "$wheels" "$stage/wheels"
cp -rL "$data" "$stage/data"
touch "$stage/environment"

serve() {  # The digits, for a wheel that has no command: by that of the build, outside
  "$LEAT_OF_BUILD" bucket "$stage/data" --port 0 --latency 5ms --tls --tls-cert-out "$stage/certificate.pem" \
    > "$stage/greeting" &
  server=$!
  until grep -qs '^listening on' "$stage/greeting"; do
    kill -0 "$server" || exit 1
    sleep 0.1
  done
  cat > "$stage/environment" << ENVIRONMENT
export AWS_ENDPOINT_URL=$(sed -n 's/^listening on //p' "$stage/greeting") AWS_REGION=us-east-1
export AWS_ACCESS_KEY_ID=anonymous AWS_SECRET_ACCESS_KEY=anonymous AWS_EC2_METADATA_DISABLED=true
export AWS_CA_BUNDLE=\$3/certificate.pem
ENVIRONMENT
}

case $wheel in *+slim-*) serve ;; esac
cat > "$stage/run" << 'RUN'
set -eu
cd "$1"  # Not where a folder called leat lies.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export LEAT_CACHE_DIR=$1/cache HOME=$1 LC_ALL=C.UTF-8
"$2" -m venv "$1/venv"
"$1/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-index \
  --find-links "$3/wheels" "$3"/leat-*.whl
case $(echo "$3"/leat-*.whl) in
  *+slim-*)  # It has no command, and says so.
    said=$("$1/venv/bin/leat" --version 2>&1) && exit 1
    case $said in *"slim wheel"*) ;; *) echo "$said"; exit 1 ;; esac ;;
  *) "$1/venv/bin/leat" --version > /dev/null ;;
esac
. "$3/environment"
"$1/venv/bin/python" "$3/try_wheel.py" "$3/data"
RUN

if [ "$where" = here ]; then
  mkdir "$stage/work"
  sh "$stage/run" "$stage/work" "$python" "$stage"
  exit
fi
prefix=
case $python in
  /*) prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
      python=$prefix/bin/python3 ;;
esac
# All mounts are this process's own and end with it, and so do the root's processes.
unshare --mount --pid --fork --kill-child -- bash -euc '
  root=$1 stage=$2 python=$3 prefix=$4
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  mkdir "$root/tmp/stage" "$root/tmp/work"
  mount --bind "$stage" "$root/tmp/stage"
  if [ -n "$prefix" ]; then
    mkdir -p "$root$prefix"
    mount --bind "$prefix" "$root$prefix"
  fi
  chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin sh /tmp/stage/run /tmp/work "$python" /tmp/stage
' try "$where" "$stage" "$python" "$prefix"
