"""Runs a benchmark by name: ./dev bench agent | fetch | decode | deli | bucket | dropin | index | nodes | nopfs | profile | ranks | solar | tune [options]."""

from __future__ import annotations

import pathlib
import runpy
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    names = sorted(path.name[: -len("_bench.py")] for path in HERE.glob("*_bench.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"bench/run.py: name one of: {', '.join(names)}", file=sys.stderr)
        return 2
    script = HERE / f"{sys.argv[1]}_bench.py"
    sys.argv = [str(script), *sys.argv[2:]]
    sys.path.insert(0, str(HERE))
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
