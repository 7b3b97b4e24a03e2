"""How well `leat profile` finds where a step goes, when the truth is known.

    ./dev bench profile [--mixtures 20] [--steps 12] [--seed N] [--json]

Each mixture is a training all of whose parts are sleeps (tests/python/profiled_training.py)
of a length drawn at random: compute, decode and fetch of each sample, and, with two
processes or two nodes, the exchange between them; of some pairs only one rank fetches
slowly. Two nodes are network namespaces joined by a link with a delay
(bench/delayed_link.py), which the exchange takes on top of its sleep; who is not root
gets processes that are told that they are nodes. Over nodes, decode and fetch are one
part, `input`. A sleep ends when a core is free for it: the truth is
what each took, as the training itself wrote it down in the cold run. The error of a part
is its distance from that, in percent of the true step. `sum` is the error of the whole
step; `unprofiled`, its error against the same training run once more without the
profiler, whose files are cold too. `naive` is the part that a timer in the script of
rank 0 gets most wrong: it takes for fetch what it waits in `next()`, and all else for
compute. Look at: median and worst of `worst_part`, within 5 %; `sum`, within 3 %. Twenty
mixtures take about nine minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from delayed_link import DEVICE, address, nodes
from leat.testing import find_binary
from measure import report

TRAINING = pathlib.Path(__file__).resolve().parent.parent / "tests" / "python" / "profiled_training.py"
PARTS = ("compute", "interconnect", "network", "preparation", "fetch", "input")
BATCH = 2
WARMUP = 3
#: Where a piece that the training wrote down belongs; "exchange" to the one that it ends.
PART_OF = {"compute": "compute", "interconnect": "interconnect", "network": "network", "decode": "preparation", "fetch": "fetch"}
SHAPES = ("one process", "two processes", "two nodes", "one late rank")


#: What stands in front of a command to run it on that node.
Enter = Callable[[int], list[str]]


@dataclasses.dataclass
class Mixture:
    """A training, and where it runs."""

    shape: str
    sleeps: dict[str, float]  # Milliseconds.
    link: float = 0  # Milliseconds one way, between two nodes that are namespaces.

    @property
    def nodes(self) -> int:
        return 2 if self.shape == "two nodes" else 1

    @property
    def ranks(self) -> int:
        return 1 if self.shape == "one process" else 2

    @property
    def first(self) -> str:
        """The address at which the others find the first rank."""
        return address(0) if self.link else "localhost"

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, **({"GLOO_SOCKET_IFNAME": DEVICE} if self.link else {})}

    def how(self, enter: Enter) -> list[str]:
        """Flags of `leat profile`."""
        if self.nodes == 2:
            prefixes = [word for node in range(2) for word in ("--node", " ".join(enter(node)))]
            return ["--bucket-writes", "--nproc-per-node", "1", *prefixes, "--master-addr", self.first]
        return ["--nproc-per-node", "2"] if self.ranks == 2 else []

    def words(self, folder: pathlib.Path) -> list[str]:
        words = [str(TRAINING), str(folder / "data"), "--pieces", str(folder / "pieces")]
        if self.shape == "one late rank":
            words += ["--late-rank", "1"]
        return words + [word for name, value in self.sleeps.items() for word in (f"--{name}", f"{value:.2f}")]


def drawn(draw: random.Random) -> Mixture:
    sleeps = {"compute": draw.uniform(40, 120), "decode": draw.uniform(0, 40), "fetch": draw.uniform(0, 60)}
    shape = draw.choice(SHAPES)
    if shape != "one process":
        sleeps["network" if shape == "two nodes" else "interconnect"] = draw.uniform(10, 80)
    link = draw.uniform(1, 10)
    return Mixture(shape, sleeps, link if shape == "two nodes" and os.geteuid() == 0 else 0)


@contextlib.contextmanager
def placed(mixture: Mixture) -> Iterator[Enter]:
    if not mixture.link:
        yield lambda node: ["env"]
        return
    with nodes(2, mixture.link / 1e3, 100e6) as enter:
        yield enter


def profiled(mixture: Mixture, enter: Enter, folder: pathlib.Path, args: argparse.Namespace) -> dict[str, Any]:
    done = subprocess.run(
        [find_binary(), "profile", "--json", "--steps", str(args.steps), "--warmup", str(WARMUP), "--repeats", "1",
         *mixture.how(enter), "--", sys.executable, *mixture.words(folder)],
        cwd=folder / "project", env={**mixture.variables, "HOME": str(folder / "project")}, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    if mixture.nodes == 1 and told["proof"]["why_no_warm"]:
        sys.exit(f"cold cannot be told from warm here: {told['proof']['why_no_warm']}")
    return told


def run_by_itself(mixture: Mixture, enter: Enter, folder: pathlib.Path, args: argparse.Namespace) -> None:
    """The training as it is without the profiler, its files as cold as the profiler's."""
    for file in (folder / "data").iterdir() if mixture.nodes == 1 else ():
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    joint = {"WORLD_SIZE": mixture.ranks, "LOCAL_WORLD_SIZE": mixture.ranks // mixture.nodes, "MASTER_ADDR": mixture.first, "MASTER_PORT": 29571}
    ranks = [
        subprocess.Popen(
            [*enter(rank), sys.executable, *mixture.words(folder), "--steps", str(WARMUP + args.steps)], cwd=folder / "project",
            env={**mixture.variables, **({} if mixture.ranks == 1 else {name: str(value) for name, value in {**joint, "RANK": rank}.items()})},
        )
        for rank in range(mixture.ranks)
    ]  # fmt: skip
    if any([rank.wait() for rank in ranks]):
        sys.exit("the training failed")


def pieces_of(folder: pathlib.Path, rank: int, steps: int) -> dict[str, float]:
    """Milliseconds of each piece of a step, as that rank wrote them down in its last run.

    A step is from one batch to the next, and ends with the wait for that one. The last
    wait is not known where the profiler ended the run in it; what it was for is.
    """
    measured: list[dict[str, list[float]]] = []
    for line in (folder / f"pieces{rank}").read_text().splitlines():
        name, seconds = line.split()
        if name == "begin":
            measured = []
        elif name == "wait":
            if measured:
                measured[-1]["wait"] = [float(seconds)]
            measured.append({})
        elif measured:
            measured[-1].setdefault(name, []).append(float(seconds))
    measured = measured[WARMUP : WARMUP + steps]
    means = {}
    for name in {name for step in measured for name in step}:
        # The batch of the last step may be followed by others, which nobody trained on.
        took = [sum(step.get(name, [])[:BATCH]) for step in measured if name != "wait" or name in step]
        means[name] = 1e3 * statistics.mean(took)
    return means


def truth_of(mixture: Mixture, folder: pathlib.Path, steps: int) -> tuple[dict[str, float], dict[str, float]]:
    """Milliseconds of each part of a step; and the parts as a timer in rank 0 sees
    them."""
    ranks = [pieces_of(folder, rank, steps) for rank in range(mixture.ranks)]
    last = min(ranks, key=lambda pieces: pieces.get("exchange", 0))  # For whom the others wait.
    truth = dict.fromkeys(PARTS, 0.0)
    for piece, part in PART_OF.items():
        truth[part] += last.get(piece, 0)
    truth["network" if mixture.nodes == 2 else "interconnect"] += last.get("exchange", 0)
    inside = ("compute", "interconnect", "network", "exchange")
    naive = {**dict.fromkeys(PARTS, 0.0), "compute": sum(ranks[0].get(piece, 0) for piece in inside), "fetch": ranks[0]["wait"]}
    return told_apart(mixture, truth), told_apart(mixture, naive)


def told_apart(mixture: Mixture, parts: dict[str, float]) -> dict[str, float]:
    """Only on one node can the profiler tell preparation and fetch apart."""
    if mixture.nodes == 1:
        return parts
    return {**parts, "input": parts["preparation"] + parts["fetch"], "preparation": 0.0, "fetch": 0.0}


def row_of(number: int, mixture: Mixture, folder: pathlib.Path, args: argparse.Namespace) -> dict[str, Any]:
    for pieces in folder.glob("pieces*"):
        pieces.unlink()
    with placed(mixture) as enter:
        told = profiled(mixture, enter, folder, args)
        truth, naive = truth_of(mixture, folder, args.steps)
        run_by_itself(mixture, enter, folder, args)
        _, by_itself = truth_of(mixture, folder, args.steps)
    step = sum(truth.values())
    found = {part: 1e3 * told["parts"].get(part, {"seconds": 0})["seconds"] for part in PARTS}
    errors = {part: 100 * (found[part] - truth[part]) / step for part in PARTS}
    return {
        "mixture": str(number), "shape": mixture.shape, "link_ms": mixture.link, "step_ms": step, **errors,
        "worst_part": max(map(abs, errors.values())),
        "sum": 100 * (1e3 * told["step_seconds"] / step - 1),
        "unprofiled": 100 * (1e3 * told["step_seconds"] / sum(by_itself.values()) - 1),
        **{f"naive {part}": 100 * (naive[part] - truth[part]) / step for part in PARTS},
        "naive": max(100 * abs(naive[part] - truth[part]) / step for part in PARTS),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mixtures", type=int, default=20)
    parser.add_argument("--steps", type=int, default=12, help="measured in each run")
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
    # On a disk: files in memory cannot be cold.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        (folder / "project").mkdir()
        (folder / "data").mkdir()
        for number in range(400):
            (folder / "data" / f"{number:03}").write_bytes(os.urandom(1024))
        os.sync()  # Pages that are not on the disk yet stay in memory.
        for number in range(args.mixtures):
            begin = time.monotonic()
            rows.append(row_of(number, drawn(draw), folder, args))
            print(f"mixture {number + 1} of {args.mixtures}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
    keys = [key for key in rows[0] if isinstance(rows[0][key], float)]
    for name, over in (("median", statistics.median), ("worst", max)):
        rows.append({"mixture": name, "shape": "", **{key: over([abs(row[key]) for row in rows[: args.mixtures]]) for key in keys}})
    report("profile: error in % of the step", rows, args.json)


if __name__ == "__main__":
    main()
