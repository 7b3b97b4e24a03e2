"""A control group of a test's own, of version 1 or 2."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from collections.abc import Iterator

ROOT = pathlib.Path("/sys/fs/cgroup")


class Cgroup:
    """One CPU's worth of time and a limit of memory, for the processes that enter."""

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
def one_cpu(memory_bytes: int) -> Iterator[Cgroup | None]:
    """None where this process may not make control groups."""
    is_v2 = (ROOT / "cgroup.controllers").exists()
    name = f"leat-test-{os.getpid()}"
    folders = [ROOT / name] if is_v2 else [ROOT / "cpu" / name, ROOT / "memory" / name]
    made = []
    try:
        try:
            for folder in folders:
                folder.mkdir()
                made.append(folder)
            if is_v2:
                (folders[0] / "cpu.max").write_text("100000 100000")
                (folders[0] / "memory.max").write_text(str(memory_bytes))
            else:
                (folders[0] / "cpu.cfs_period_us").write_text("100000")
                (folders[0] / "cpu.cfs_quota_us").write_text("100000")
                (folders[1] / "memory.limit_in_bytes").write_text(str(memory_bytes))
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
