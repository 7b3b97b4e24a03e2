"""How well `leat profile` finds where a step goes, when the truth is known.

    ./dev bench profile [--mixtures 20] [--steps 20] [--repeats 1] [--seed N] [--json]

Each mixture is a training all of whose parts are sleeps (tests/python/profiled_training.py)
of a length drawn at random: compute, decode and fetch of each sample, and, with two
processes or two nodes (processes that are told so), the exchange between them. The
error of a part is its distance from the truth, in percent of the true step. `naive` is
what a timer in the script gets wrong: it takes for waiting what it waits in `next()`,
and the truth is decode and fetch. Look at: median and worst of `worst_part`, within 5 %;
`sum`, within 3 %.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from leat.testing import find_binary
from measure import report

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "tests" / "python" / "profiled_training.py"
PARTS = ("compute", "interconnect", "network", "preparation", "fetch")
BATCH = 2


def mixture(draw: random.Random) -> tuple[list[str], dict[str, float]]:
    """Flags of `leat profile`, and milliseconds of each sleep."""
    sleeps = {"compute": draw.uniform(40, 120), "decode": draw.uniform(0, 40), "fetch": draw.uniform(0, 60)}
    shape = draw.choice(("one process", "two processes", "two nodes"))
    if shape == "two processes":
        sleeps["interconnect"] = draw.uniform(10, 80)
        return ["--nproc-per-node", "2"], sleeps
    if shape == "two nodes":
        sleeps["network"] = draw.uniform(10, 80)
        return ["--nproc-per-node", "1", "--node", "env", "--node", "env", "--master-addr", "localhost"], sleeps
    return [], sleeps


def truth_of(sleeps: dict[str, float]) -> dict[str, float]:
    """Milliseconds of each part of a step."""
    return {
        "compute": sleeps["compute"], "interconnect": sleeps.get("interconnect", 0),
        "network": sleeps.get("network", 0), "preparation": BATCH * sleeps["decode"],
        "fetch": BATCH * sleeps["fetch"],
    }  # fmt: skip


def measured(how: list[str], sleeps: dict[str, float], folder: pathlib.Path, args: argparse.Namespace) -> dict[str, Any]:
    words = [word for name, value in sleeps.items() for word in (f"--{name}", f"{value:.2f}")]
    (folder / "project").mkdir(exist_ok=True)
    done = subprocess.run(
        [find_binary(), "profile", "--json", "--steps", str(args.steps), "--warmup", "3", "--repeats",
         str(args.repeats), *how, "--", sys.executable, str(TRAINING), str(folder / "data"), *words],
        cwd=folder / "project", env={**os.environ, "HOME": str(folder / "project")}, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def row_of(name: str, how: list[str], sleeps: dict[str, float], told: dict[str, Any]) -> dict[str, Any]:
    truth = truth_of(sleeps)
    step = sum(truth.values())
    if told["proof"]["why_no_warm"]:
        sys.exit(f"cold cannot be told from warm here: {told['proof']['why_no_warm']}")
    errors = {part: 100 * (1e3 * told["parts"].get(part, {"seconds": 0})["seconds"] - truth[part]) / step
              for part in PARTS}  # fmt: skip
    waiting = 100 * (truth["preparation"] + truth["fetch"]) / step
    return {
        "mixture": name, "ranks": 2 if how else 1, "step_ms": step,
        **errors,
        "worst_part": max(map(abs, errors.values())),
        "sum": abs(100 * (1e3 * told["step_seconds"] - step) / step),
        "naive": abs(100 * told["naive_wait_fraction"] - waiting),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixtures", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, help="else a fresh one, which is printed")
    parser.add_argument("--quick", action="store_true", help="one short mixture: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.mixtures, args.steps = 1, 5
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", file=sys.stderr)
    draw = random.Random(seed)

    rows = []
    # On a disk: what lies in memory cannot be cold.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        for number in range(400):
            (folder / "data" / f"{number:03}").write_bytes(os.urandom(1024))
        for number in range(args.mixtures):
            print(f"mixture {number + 1} of {args.mixtures}", file=sys.stderr)
            how, sleeps = mixture(draw)
            rows.append(row_of(str(number), how, sleeps, measured(how, sleeps, folder, args)))
    keys = [key for key in rows[0] if isinstance(rows[0][key], float)]
    for name, over in (("median", statistics.median), ("worst", max)):
        rows.append({"mixture": name, "ranks": "", **{key: over([abs(row[key]) for row in rows[: args.mixtures]]) for key in keys}})
    report("profile: error in % of the step", rows, args.json)


if __name__ == "__main__":
    main()
