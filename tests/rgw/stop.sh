#!/bin/bash
# Ends what start.sh started in DIR, and nothing else.
set -u
dir=$(realpath -m "${1:?the folder given to start.sh}")
for file in "$dir"/run/*.pid; do
  [ -s "$file" ] || continue
  pid=$(cat "$file")
  # Killed outright: its data is thrown away, and a polite end would look for
  # dead daemons for seconds.
  tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | grep -qF "$dir/" &&
    kill -KILL "$pid"
done
exit 0
