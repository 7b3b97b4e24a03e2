#!/usr/bin/env python3
"""Runs other projects' tests of their data loaders against leat.torch.DataLoader.

    ./dev run python tests/outside/dropin.py FILE... [-- PYTEST-ARGUMENT...]

FILE is torch's test/test_dataloader.py or torchdata's
test/stateful_dataloader/test_sampler.py, as they are: they are not in this
repository. Take torch's of the version that is installed. They need expecttest and
psutil; torchdata's needs torchdata.

Each file is run twice: with its own loader, then with ours in its place (see
shim/). A test applies if it passes with its own loader on this machine and is not
in outside_skips.py, which says why. Prints the ratio of those that pass, and every
test that does not; the status is 1 below 90 %. The tests give processes 60 s to
start, so the machine should have little else to do.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ENOUGH = 0.9


def outcomes(file: pathlib.Path, loader: str, arguments: list[str]) -> dict[str, tuple[str, str]]:
    """By test: "passed", "failed" or "skipped", and what pytest said of it."""
    folders = [str(HERE / "shim"), str(HERE), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, folders))
    with tempfile.TemporaryDirectory(prefix="leat-outside-") as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(file), "-q", "-p", "no:cacheprovider",
                   f"--rootdir={file.parent}", "-c", os.devnull, "-o", "junit_family=xunit1",
                   f"--junitxml={report}", "-p", "outside_skips", *arguments]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": path, "LEAT_OUTSIDE_LOADER": loader}
        subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
        if not report.exists():
            sys.exit(f"{file}: pytest wrote no report; what it said is above")
        return dict(outcome_of(case) for case in ElementTree.parse(report).iter("testcase"))


def outcome_of(case: ElementTree.Element) -> tuple[str, tuple[str, str]]:
    name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
    for child in case:
        if child.tag in ("failure", "error"):
            return name, ("failed", (child.get("message") or "").splitlines()[0])
        if child.tag == "skipped":
            return name, ("skipped", child.get("message") or "")
    return name, ("passed", "")


def compare(file: pathlib.Path, arguments: list[str]) -> float:
    """Runs a file both ways, prints what came out; the ratio of passes."""
    own = outcomes(file, "own", arguments)
    ours = outcomes(file, "leat", arguments)
    skipped = {name: why for name, (how, why) in ours.items() if how == "skipped"}
    theirs = {name for name, (how, _) in own.items() if how != "passed"}
    applies = [name for name in ours if name not in skipped and name not in theirs]
    failed = [name for name in applies if ours[name][0] != "passed"]
    print(f"{file.name}: {len(applies) - len(failed)} of {len(applies)} that apply pass")
    for name in failed:
        print(f"  failed   {name}: {ours[name][1]}")
    for name, why in skipped.items():
        print(f"  skipped  {name}: {why}")
    for name in sorted(theirs - set(skipped)):
        print(f"  left out {name}: with its own loader it {own[name][0]} here: {own[name][1]}")
    return (len(applies) - len(failed)) / max(1, len(applies))


def main() -> int:
    given = sys.argv[1:]
    arguments = given[given.index("--") + 1 :] if "--" in given else []
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(given[: given.index("--")] if "--" in given else given)
    ratios = [compare(file.resolve(), arguments) for file in options.files]
    return 0 if min(ratios) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
