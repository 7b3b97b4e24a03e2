#!/usr/bin/env bash
# Times the first `./dev demo` of a machine that has nothing but Debian 12 and git: the
# packages of apt, those of PyPI, the compiling, the demo. Run as root, on a quiet machine.
#   time_set_up.sh [--cores N] [--until apt|pypi|compiling|demo] [--lend FOLDER]...
# --cores (2): how many of this machine's cores it may use. --until (demo): the part that
# is the last one; `compiling` is the whole set-up. --lend shows a folder of this machine to
# that one, at the same path: a mirror that pip's settings name. The network, its
# certificates and pip's settings are this machine's; ccache, .venv and build/ are not.
# The commit is HEAD: what is not committed does not go along. The whole log is printed, each
# line with the second in which it came, and then the table.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cores=2 last=demo lent=()
while [ $# -gt 0 ]; do
  case $1 in
    --cores) cores=$2 ;;
    --until) last=$2 ;;
    --lend) lent+=("$(realpath "$2")") ;;
    *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
case $last in apt | pypi | compiling | demo) ;; *) echo "time_set_up: no part $last" >&2; exit 2 ;; esac

bare=$root/build/roots/set-up
"$root/tools/make_root.sh" "$bare" bare bookworm "$(dpkg --print-architecture)" git
machine=$(mktemp -d "$root/build/set-up.XXXXXX")
user=
# unshare heeds no other signal while it waits.
trap 'if [ -n "$user" ]; then kill -KILL "$user" || true; wait "$user" || true; fi 2> /dev/null
  rm -rf --one-file-system "$machine"' EXIT
cp -a "$bare/." "$machine"
cp /etc/resolv.conf "$machine/etc/resolv.conf"
apt-config dump Acquire::Check-Valid-Until > "$machine/etc/apt/apt.conf.d/90clock"
cp -L /etc/ssl/certs/ca-certificates.crt "$machine/etc/lent-certificates.crt"
for settings in /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
  [ ! -f "$settings" ] || install -D -m 644 "$settings" "$machine/${settings/#"$HOME"//root}"
done
git clone --quiet --no-hardlinks "$root" "$machine/root/leat"

mkfifo "$machine/log"
# All mounts are this process's own and end with it, and so do the root's processes.
unshare --mount --pid --fork --kill-child -- bash -euc '
  machine=$1 cores=$2; shift 2
  mount -t proc proc "$machine/proc"
  mount --rbind /dev "$machine/dev"
  for folder; do
    mkdir -p "$machine$folder"
    mount --bind -o ro "$folder" "$machine$folder"
  done
  exec taskset -c "0-$((cores - 1))" chroot "$machine" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CERT=/etc/lent-certificates.crt SSL_CERT_FILE=/etc/lent-certificates.crt \
    sh -c "cd /root/leat && exec ./dev demo 2>&1"
' machine "$machine" "$cores" "${lent[@]}" < /dev/null > "$machine/log" &
user=$!
python3 "$root/tools/time_set_up.py" "$last" < "$machine/log"
[ "$last" = demo ] || exit 0  # The next part goes on; it is ended here.
status=0
wait "$user" || status=$?
user=
[ "$status" = 0 ] ||
  echo "time_set_up: ./dev demo failed; its reason is above, and the times are no complete set-up's" >&2
exit "$status"
