"""Scripts that know nothing about Leat (examples/plain), profiled as they are and then
with one import changed: they read more at once, and nothing is left of either.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import uuid

import pytest

import leat
from profiling import profile, report_of

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "plain"
sys.path.insert(0, str(EXAMPLES))

import make_data  # noqa: E402

SCRIPTS = {
    "images_ddp.py": ("--nproc-per-node", "2"),
    "token_windows.py": (),
    "table_rows.py": (),
}
# One in every run of the tests, for each takes a minute; LEAT_SCRIPTS=all: the three.
PROFILED = SCRIPTS if os.environ.get("LEAT_SCRIPTS") == "all" else ["table_rows.py"]
TORCHS = "from torch.utils.data import DataLoader, Dataset\n"
OURS = "from leat.torch import DataLoader\nfrom torch.utils.data import Dataset\n"


@pytest.fixture
def bucket(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    make_data.make(folder, samples=400)
    with leat.testing.Bucket(folder, latency="80ms") as bucket:
        yield bucket


@pytest.fixture
def short_path():
    """A folder for sockets too, whose names may not be long."""
    with tempfile.TemporaryDirectory(prefix="leat-test-", dir="/tmp") as folder:
        yield pathlib.Path(folder)


class Place:
    """A project with its own files, and a temporary folder of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.mark = f"LEAT_TEST_MARK={uuid.uuid4()}"
        self.project = folder / "project"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.project.mkdir()
        for name in ("images.pt", "tokens.pt", "table.pt"):
            (self.project / name).write_text("of last week")

    def profile(self, script: pathlib.Path, *how: str, **variables: str) -> dict:
        name, _, value = self.mark.partition("=")
        done = profile(
            self.project, "--steps", "5", "--warmup", "4", "--repeats", "1", *how, "--", sys.executable, str(script),
            timeout=140, TMPDIR=str(self.temporary), PYTHONDONTWRITEBYTECODE="1", **{name: value}, **variables,
        )  # fmt: skip
        return report_of(done)

    def left_files(self) -> dict[str, str]:
        found = [path for path in self.project.parent.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.project.parent)): path.read_text() for path in found}

    def iterates_a_dataloader(self) -> str:
        """The module by which a program that starts now iterates a DataLoader."""
        return subprocess.run(
            [sys.executable, "-c", "import torch.utils.data as data; print(data.DataLoader.__iter__.__globals__['__name__'])"],
            cwd=self.project, env={**os.environ, "HOME": str(self.project), "TMPDIR": str(self.temporary)},
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.strip()  # fmt: skip

    def left_processes(self) -> list[str]:
        """Command lines of what runs with this place's mark in its environment."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:  # It ended meanwhile, or is somebody else's.
                continue
        return found


def profiled_and_gone(script: pathlib.Path, folder: pathlib.Path, bucket: leat.testing.Bucket) -> dict:
    """The report of a profile that has left nothing behind."""
    place = Place(folder / "of")
    report = place.profile(script, *SCRIPTS[script.name], **bucket.env())
    assert place.left_files() == {f"project/{kept}.pt": "of last week" for kept in ("images", "tokens", "table")}
    assert list(place.temporary.iterdir()) == []
    assert place.left_processes() == []
    assert place.iterates_a_dataloader() == "torch.utils.data.dataloader"
    assert bucket.counters()["put"] == 0
    assert report["supply_cpu_seconds"] > 0
    return report


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="torch's own workers pickle these datasets there, and cannot")
@pytest.mark.parametrize("name", PROFILED)
def test_a_script_reads_an_item_a_worker_and_with_leat_in_torchs_place_a_batch_at_once(name, bucket, short_path):
    ours = short_path / name
    ours.write_text((EXAMPLES / name).read_text().replace(TORCHS, OURS))

    before = profiled_and_gone(EXAMPLES / name, short_path / "before", bucket)
    at_once_before = bucket.counters()["most_in_flight"]
    bucket.reset_counters()
    after = profiled_and_gone(ours, short_path / "after", bucket)
    at_once_after = bucket.counters()["most_in_flight"]

    assert (before["loader"], before["workers"]) == ("torch.utils.data.dataloader.DataLoader", 2)
    assert before["parts"]["fetch"]["seconds"] > 0
    assert "fetch" in [removal["part"] for removal in before["what_if"]["removals"]]
    assert (after["loader"], after["workers"]) == ("leat.torch.DataLoader", None)
    # A worker of torch's reads one item at a time; the engine reads a batch's at
    # once, which is why it waits less. Seconds would depend on this machine's load.
    ranks = int(SCRIPTS[name][-1]) if SCRIPTS[name] else 1
    assert at_once_before <= 2 * ranks
    assert at_once_after >= 8 > at_once_before


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_short_and_know_nothing_about_leat(name):
    text = (EXAMPLES / name).read_text()

    assert "leat" not in text.lower()
    assert text.count(TORCHS) == 1
    assert len(text.splitlines()) <= 80
