"""A control group of a test's own, of version 1 or 2."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import time
from collections.abc import Iterator

ROOT = pathlib.Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 20_000
_numbers = itertools.count()


class Cgroup:
    """So much of the CPUs' time, and of memory, for the processes that enter."""

    def __init__(self, folders: list[pathlib.Path], is_v2: bool) -> None:
        self.folders = folders
        self.is_v2 = is_v2

    def enter_command(self) -> str:
        """Shell words that put the shell itself into the group."""
        return " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self.folders)

    def throttled_seconds(self) -> float:
        lines = (self.folders[0] / "cpu.stat").read_text().split("\n")
        stat = dict(line.split() for line in lines if line)
        if self.is_v2:
            return int(stat["throttled_usec"]) / 1e6
        return int(stat["throttled_time"]) / 1e9

    def out_of_memory_kills(self) -> int:
        name = "memory.events" if self.is_v2 else "memory.oom_control"
        lines = (self.folders[-1] / name).read_text().split("\n")
        return int(dict(line.split() for line in lines if line).get("oom_kill", 0))


@contextlib.contextmanager
def limited(cpus: float, memory_bytes: int | None = None) -> Iterator[Cgroup | None]:
    """None where this process may not make control groups.

    In each 20 ms the process runs for ``cpus`` times as long: a shorter period costs
    the kernel more, and in a longer one it stands still for long.
    """
    is_v2 = (ROOT / "cgroup.controllers").exists()
    name = f"leat-test-{os.getpid()}-{next(_numbers)}"
    controllers = ["cpu"] if memory_bytes is None else ["cpu", "memory"]
    folders = [ROOT / name] if is_v2 else [ROOT / controller / name for controller in controllers]
    quota = round(cpus * _PERIOD_MICROSECONDS)
    made = []
    try:
        try:
            for folder in folders:
                folder.mkdir()
                made.append(folder)
            if is_v2:
                (folders[0] / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
            else:
                (folders[0] / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
                (folders[0] / "cpu.cfs_quota_us").write_text(str(quota))
            if memory_bytes is not None:
                name = "memory.max" if is_v2 else "memory.limit_in_bytes"
                (folders[-1] / name).write_text(str(memory_bytes))
        except OSError:
            yield None
            return
        yield Cgroup(folders, is_v2)
    finally:
        for folder in made:
            _remove(folder)


def _remove(folder: pathlib.Path) -> None:
    for _ in range(50):  # Its processes may still be on their way out.
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
