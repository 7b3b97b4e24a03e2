#!/usr/bin/env python3
"""Reads what `./dev demo` says on a new machine, and tells how long each part took.

time_set_up.py apt|pypi|compiling|demo < LOG

Ends as the part after the named one begins; if the log ends sooner, the part was not
completed, and it fails. The demo lasts until the log ends: `tools/time_set_up.sh`, which
makes the log, knows whether it failed.
"""

from __future__ import annotations

import re
import sys
import time

# Each part begins with the first line that matches, and lasts until the next one begins.
PARTS = {
    "apt": r"dev: (setting up|installing \S+ )",
    "pypi": r"dev: installing \d+ Python packages",
    "compiling": r"dev: compiling up to",
    "demo": r"making the photographs",  # examples/demo.py
}


def main() -> None:
    parts = list(PARTS)
    last = sys.argv[1]
    begun: dict[str, float] = {}
    start = time.monotonic()
    for line in sys.stdin:
        at = time.monotonic() - start
        following = parts[len(begun)] if len(begun) < len(parts) else None
        if following and re.match(PARTS[following], line):
            begun[following] = at
            if following in parts[parts.index(last) + 1 :]:
                break
        print(f"{at:7.0f}  {line}", end="", flush=True)
    end = time.monotonic() - start
    needed = parts[: parts.index(last) + 2]  # The part after it tells that it was completed.
    if missing := [part for part in needed if part not in begun]:
        sys.exit(f"time_set_up: it ended after {end:.0f} s, before the part {missing[0]}; its reason is above")
    for part, since in begun.items():
        if parts.index(part) <= parts.index(last):
            until = begun.get(parts[parts.index(part) + 1], end) if part != "demo" else end
            print(f"{part:12} {until - since:6.0f} s")
    print(f"{'together':12} {end:6.0f} s")


if __name__ == "__main__":
    main()
