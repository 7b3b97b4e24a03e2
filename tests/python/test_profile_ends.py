"""`leat profile` killed: none of its processes goes on, and none of its files is
left."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from profiling import skip_without_scratch

# Its processes tell their numbers outside of the folders that a scratch layer
# covers.
TRAINING = """
import os, pathlib, sys, time
from torch.utils.data import DataLoader, Dataset

TOLD = pathlib.Path(sys.argv[1])

def tell(name):
    (TOLD / f"{name}-{os.getpid()}").touch()

class Items(Dataset):
    def __len__(self):
        return 1000
    def __getitem__(self, index):
        tell("worker")
        return index

if __name__ == "__main__":
    tell("rank")
    (TOLD / f"launcher-{os.getppid()}").touch()
    for _ in DataLoader(Items(), num_workers=1):
        time.sleep(0.2)
"""


def told(folder: pathlib.Path) -> dict[int, str]:
    """The processes of the training, by their numbers."""
    names = (path.name.split("-") for path in folder.iterdir())
    return {int(pid): name for name, pid in names}


def lives(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(what, seconds: float = 60) -> bool:
    ends = time.monotonic() + seconds
    while not what():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("way, scratch", [
    (signal.SIGKILL, True), (signal.SIGKILL, False), (signal.SIGHUP, True), (signal.SIGTERM, False),
], ids=["SIGKILL-scratch", "SIGKILL-no scratch", "SIGHUP-scratch", "SIGTERM-no scratch"])  # fmt: skip
def test_a_profile_that_is_killed_takes_its_ranks_along(way, scratch, tmp_path):
    project, numbers, temporary = (tmp_path / name for name in ("project", "numbers", "temporary"))
    for folder in (project, numbers, temporary):
        folder.mkdir()
    (project / "train.py").write_text(TRAINING)
    # In a session of its own, so that a signal to its group does not reach the tests,
    # which may have been told to ignore the end of their terminal, as by nohup.
    started = subprocess.Popen(
        ["leat", "profile", "--nproc-per-node", "2", *([] if scratch else ["--no-scratch"]), "--",
         sys.executable, "train.py", str(numbers)],
        cwd=project, env={**os.environ, "HOME": str(project), "TMPDIR": str(temporary)}, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wanted = ["launcher", "rank", "rank", "worker", "worker"]
        wait_until(lambda: started.poll() is not None or sorted(told(numbers).values()) == wanted)
        if started.poll() is not None:
            said = started.stderr.read()
            skip_without_scratch(said)
            pytest.fail(said)
        processes = told(numbers)
        assert sorted(processes.values()) == wanted
        assert all(map(lives, processes))
        assert list(temporary.glob("leat-profile-*"))

        os.killpg(started.pid, way)
        started.wait(60)

        assert wait_until(lambda: not any(map(lives, processes)), 30), {
            name: lives(pid) for pid, name in processes.items()
        }
        # torchrun's leavings are not ours: that name is too long for a temporary folder
        # of its own.
        assert wait_until(lambda: not list(temporary.glob("leat-profile-*")), 30)
    finally:
        started.kill()
        started.wait()
        started.stderr.close()
