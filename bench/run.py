"""Runs a benchmark by name: ./dev bench NAME [options]. Without a name it says which there are.

--publish keeps what it found for docs/performance.md; alone, it rewrites that page.
"""

from __future__ import annotations

import pathlib
import runpy
import shlex
import sys

HERE = pathlib.Path(__file__).parent
PARTIAL = ("--only", "--part", "--ways")


def is_short_for(word: str, options: tuple[str, ...]) -> bool:
    """Whether argparse may take this word of the command line for one of these options."""
    name = word.partition("=")[0]
    return len(name) > 2 and any(option.startswith(name) for option in options)


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
    if is_published and any(is_short_for(word, ("--quick",)) for word in sys.argv[2:]):
        print("bench/run.py: --quick shows that a bench works; leave it out to publish what it finds", file=sys.stderr)
        return 2
    if is_published and (part := next((word for word in sys.argv[2:] if is_short_for(word, PARTIAL)), None)):
        print(f"bench/run.py: {part} runs a part; leave it out to publish what the whole finds", file=sys.stderr)
        return 2
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"bench/run.py: name one of: {', '.join(names)}", file=sys.stderr)
        return 2
    script = HERE / f"{sys.argv[1]}_bench.py"
    sys.argv = [str(script), *sys.argv[2:]]
    if is_published:
        measure.publish_to(publish.PUBLISHED / f"{script.stem[: -len('_bench')]}.json", command)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    measure.publish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
