#!/usr/bin/env python3
"""Checks the content of a wheel: the package, the libraries it needs, and
nothing else.

check_wheel.py WHEEL
"""

from __future__ import annotations

import fnmatch
import sys
import zipfile

MOST_BYTES = 40 << 20
ALLOWED = (
    "leat/*.py",
    "leat/*.pyi",
    "leat/py.typed",
    "leat/_native.*.so",
    "leat/bin/leat",
    "leat.libs/*.so*",
    "leat-*.dist-info/*",
)
NEEDED = ("leat/__init__.py", "leat/py.typed", "leat/_native.pyi", "leat/bin/leat")


def main() -> int:
    wheel = sys.argv[1]
    with zipfile.ZipFile(wheel) as archive:
        names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
        packed = sum(entry.compress_size for entry in archive.infolist())
    wrong = [f"does not belong there: {name}" for name in names
             if not any(fnmatch.fnmatch(name, pattern) for pattern in ALLOWED)]  # fmt: skip
    wrong += [f"is missing: {name}" for name in NEEDED if name not in names]
    if packed > MOST_BYTES:
        wrong.append(f"{packed >> 20} MiB, more than {MOST_BYTES >> 20}")
    for line in wrong:
        print(f"{wheel}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
