"""The demo as a benchmark: seven ways to train from a bucket 55 ms away, and its picture.

    ./dev bench demo [--picture docs/demo.svg] [--json]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

from measure import report

DEMO = pathlib.Path(__file__).parents[1] / "examples/demo.py"
COLUMNS = ("samples_per_second", "wait_fraction", "samples_trained", "accuracy")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--picture", help="draws it there; default: where the demo does")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    words = ["--picture", options.picture] if options.picture else []
    done = subprocess.run([sys.executable, DEMO, "--json", *words], stdout=subprocess.PIPE, text=True, check=False)
    told = done.stdout.splitlines()
    if done.returncode != 0 or not told:
        print("\n".join(told), file=sys.stderr)
        return 1
    demo = json.loads(told[-1])
    rows = [
        {"way": name, **{key: way[key] for key in COLUMNS}, "gets": sum(way["gets"])}
        for name, way in demo["ways"].items()
    ]
    report(f"demo: {demo['samples']} photographs, {demo['latency']} away", rows, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
