"""Runs a benchmark by name: ./dev bench NAME [options]. Without a name it says which there are.

--publish keeps what it found for docs/performance.md; alone, it rewrites that page.
"""

from __future__ import annotations

import pathlib
import runpy
import shlex
import sys

HERE = pathlib.Path(__file__).parent


def main() -> int:
    names = sorted(path.name[: -len("_bench.py")] for path in HERE.glob("*_bench.py"))
    sys.path.insert(0, str(HERE))
    import measure
    import publish

    command = shlex.join(["./dev", "bench", *(word for word in sys.argv[1:] if word != "--publish")])
    is_published = "--publish" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--publish"]
    if is_published and len(sys.argv) == 1:
        publish.rewrite()
        return 0
    if is_published and "--quick" in sys.argv:
        print("bench/run.py: --quick shows that a bench works; leave it out to publish what it finds", file=sys.stderr)
        return 2
    if is_published and "--only" in sys.argv:
        print("bench/run.py: --only runs a part; leave it out to publish what the whole finds", file=sys.stderr)
        return 2
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"bench/run.py: name one of: {', '.join(names)}", file=sys.stderr)
        return 2
    script = HERE / f"{sys.argv[1]}_bench.py"
    sys.argv = [str(script), *sys.argv[2:]]
    if is_published:
        measure.publish_to(publish.PUBLISHED / f"{script.stem[: -len('_bench')]}.json", command)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
