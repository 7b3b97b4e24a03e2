"""How well `leat recommend` foretells machines that it has never seen, and what its picks cost.

    ./dev bench recommend [--loaders torch leat] [--runs 1] [--prices 200] [--json]

The machines are this one in pieces: a control group (made here, and removed) gives so
much of the cores' time, `leat bucket --total-bandwidth` so much of a network, and the
emulated accelerator sleeps for so long. bench/emulated_training.py is profiled on the
first of them alone; `leat recommend` foretells the others, which are then run. Look at:
`error %` of the time of those that were held out, its median within 12; and `dearer %`:
how much more the machine that it picks costs than the truly cheapest, over this many
lists of prices drawn at random around what the pieces are worth, within 5. Needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "python"))

from cgroups import limited  # noqa: E402
from emulated_training import BATCH, make_photos  # noqa: E402
from leat.testing import Bucket, find_binary  # noqa: E402
from measure import report, spread  # noqa: E402

TRAINING = pathlib.Path(__file__).with_name("emulated_training.py")
LATENCY = "20ms"
COMPUTE = 20.0
STEPS = 10_000


@dataclasses.dataclass(frozen=True)
class Machine:
    name: str
    cores: float
    megabytes: int  # A second, of its network.
    speed: float

    @property
    def worth(self) -> float:
        """Dollars an hour, about."""
        return 0.05 * self.cores + 0.004 * self.megabytes + 0.4 * self.speed

    @property
    def compute(self) -> float:
        return COMPUTE / self.speed


MACHINES = [
    Machine("profiled", 2, 60, 1),
    Machine("half a core", 0.5, 60, 1),
    Machine("one core", 1, 60, 1),
    Machine("narrow", 2, 8, 1),
    Machine("fast", 2, 60, 2),
    Machine("fast and wide", 2, 240, 2),
    Machine("slow", 1, 30, 0.5),
    Machine("slow and narrow", 0.5, 15, 0.5),
]


class Place:
    """A machine that processes can be started on."""

    def __init__(self, machine: Machine, folder: pathlib.Path, stack: contextlib.ExitStack) -> None:
        self.machine = machine
        self.folder = folder
        group = stack.enter_context(limited(machine.cores))
        if group is None:
            sys.exit("making control groups with limits needs root and a writable /sys/fs/cgroup")
        self.enter = group.enter_command()
        self.bucket = stack.enter_context(
            Bucket(folder, latency=LATENCY, total_bandwidth=f"{machine.megabytes}MB/s")
        )

    def run(self, words: list[str], more: str | None = None, **options: Any) -> str:
        return subprocess.run(
            ["sh", "-c", f"{self.enter} && exec {shlex.join(words)}"],
            input=more, check=True, stdout=subprocess.PIPE, text=True, **options,
        ).stdout  # fmt: skip

    def training(self, loader: str) -> list[str]:
        return [sys.executable, str(TRAINING), str(self.folder / "photos"), "--loader", loader]

    def profile(self, loader: str, repeats: int) -> pathlib.Path:
        project = self.folder / f"profiled-{loader}"
        project.mkdir()
        told = self.run(
            [find_binary(), "profile", "--json", "--steps", "20", "--warmup", "6", "--repeats", str(repeats), "--",
             *self.training(loader), "--compute", str(self.machine.compute)],
            cwd=project, env={**os.environ, **self.bucket.env(), "HOME": str(project)},
        )  # fmt: skip
        (project / "report.json").write_text(told)
        return project / "report.json"

    def step(self, loader: str) -> float:
        asked = {"url": self.bucket.url, "cached": 0, "compute": self.machine.compute}
        told = json.loads(self.run([*self.training(loader), "--measure"], json.dumps(asked)))
        return statistics.mean(told["seconds"])


def recommended(path: pathlib.Path, dollars: dict[str, float]) -> list[dict[str, Any]]:
    catalog = path.with_name("machines.toml")
    catalog.write_text("\n".join(
        f'[[machine]]\nname = "{one.name}"\nspeed = {one.speed}\ncores = {one.cores}\nnetwork = "{one.megabytes}MB"\n'
        f'dollars_per_hour = {dollars[one.name]:.6f}\nas_of = "now"\nsource = "drawn"' for one in MACHINES
    ))  # fmt: skip
    done = subprocess.run(
        [find_binary(), "recommend", str(path), "--catalog", str(catalog), "--on", MACHINES[0].name, "--steps", str(STEPS), "--json"],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return json.loads(done.stdout)["machines"]


def dearer(path: pathlib.Path, found: dict[str, float], draw: random.Random) -> float:
    """How much more the pick costs than the cheapest, in percent, with one list of prices."""
    dollars = {one.name: one.worth * draw.uniform(0.7, 1.4) for one in MACHINES}
    told = recommended(path, dollars)
    cost = {
        row["name"]: found[row["name"]] * STEPS / 3600 * dollars[row["name"]] + row["dollars_of"]["gets"] for row in told
    }
    pick = next(row["name"] for row in told if row["is_choice"])
    return 100 * (cost[pick] / min(cost.values()) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loaders", nargs="+", choices=BATCH, default=list(BATCH))
    parser.add_argument("--runs", type=int, default=1, help="of each machine, and repeats of the profile")
    parser.add_argument("--prices", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the prices")
    parser.add_argument("--keep", help="a folder for the reports")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    draw = random.Random(args.seed)

    rows = []
    verdicts = []
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        make_photos(folder, 640)
        places = [Place(machine, folder, stack) for machine in MACHINES]
        for loader in args.loaders:
            print(f"{loader}: profiling", file=sys.stderr)
            path = places[0].profile(loader, args.runs)
            if args.keep:
                pathlib.Path(args.keep, f"{loader}.json").write_bytes(path.read_bytes())
            told = {row["name"]: row["hours"] * 3600 / STEPS for row in recommended(path, {one.name: one.worth for one in MACHINES})}
            steps: dict[str, list[float]] = {one.name: [] for one in MACHINES}
            for run in range(args.runs):
                for place in places:
                    print(f"{loader}, run {run + 1} of {args.runs}: {place.machine.name}", file=sys.stderr)
                    steps[place.machine.name].append(place.step(loader))
            found = {}
            for one in MACHINES:
                found[one.name], deviation = spread(steps[one.name])
                rows.append({
                    "loader": loader, "machine": one.name, "cores": float(one.cores), "MB/s": one.megabytes, "speed": one.speed,
                    "foretold, ms": 1e3 * told[one.name], "found, ms": 1e3 * found[one.name], "+-": 1e3 * deviation,
                    "error %": 100 * (told[one.name] / found[one.name] - 1),
                })  # fmt: skip
            errors = [abs(row["error %"]) for row in rows if row["loader"] == loader and row["machine"] != "profiled"]
            picks = [dearer(path, found, draw) for _ in range(args.prices)]
            for name, of in (("median", statistics.median), ("worst", max)):
                verdicts.append({"loader": loader, "machine": name, "error %": of(errors), "dearer %": of(picks)})
            within = 100 * sum(pick <= 5 for pick in picks) / len(picks)
            verdicts.append({"loader": loader, "machine": f"picks within 5 %: {within:.1f} % of lists"})
    report("recommend: a step on machines that were held out", rows + verdicts, args.json)


if __name__ == "__main__":
    main()
