"""Whether more threads would do more work, from the CPU time of the present ones.

Threads that wait for something other than a core leave cores idle, and twice as many do
twice as much. Threads that compute do more only as long as they get more cores together.
They get none on a full machine, or under the interpreter's lock (GIL).
"""

from __future__ import annotations

import threading
import time

SHORT_SECONDS = 2e-3
SURE_SECONDS = 20e-3
_COMPUTING = 0.8  # Cores; below this they wait for something else.
_WORTHWHILE = 1.1  # Times the cores that fewer threads had.


class Cores:
    """Adds up the CPU time of threads while somebody waited for them.

    Threads: the caller's lock.
    """

    def __init__(self) -> None:
        self._clocks: list[int] = []
        self._seen: tuple[float, float] = (0.0, 0.0)  # Time, CPU seconds.
        self._seconds = 0.0
        self._cpu = 0.0
        self._cores_of_fewer: float | None = None

    def join(self, clock: int) -> None:
        """A thread with this CPU clock takes part."""
        self._clocks.append(clock)

    def watch(self) -> None:
        """A wait begins: earlier times do not count."""
        self._seen = (time.perf_counter(), self._cpu_seconds())

    def are_more_worthwhile(self) -> bool | None:
        """Whether more threads would do more; None if it is too early to say."""
        before, self._seen = self._seen, (time.perf_counter(), self._cpu_seconds())
        self._seconds += self._seen[0] - before[0]
        self._cpu += self._seen[1] - before[1]
        return self.judge(self._seconds, self._cpu)

    def judge(self, seconds: float, cpu: float) -> bool | None:
        """The same as `are_more_worthwhile`, from CPU seconds in this many
        seconds."""
        if seconds < SHORT_SECONDS:
            return None
        cores, fewer = cpu / seconds, self._cores_of_fewer
        if cores >= _COMPUTING and seconds < SURE_SECONDS:
            return None
        self._seconds = self._cpu = 0.0
        is_worthwhile = cores < _COMPUTING or fewer is None or cores > _WORTHWHILE * fewer
        if is_worthwhile:
            self._cores_of_fewer = cores
        return is_worthwhile

    def _cpu_seconds(self) -> float:
        return sum(map(seconds_of, self._clocks))


def own_clock() -> int | None:
    """The CPU clock of the calling thread, for others to read; None if there is none."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    return None if clock_of is None else clock_of(threading.get_ident())


def seconds_of(clock: int) -> float:
    """The value of a CPU clock; 0 once its thread has ended."""
    try:
        return time.clock_gettime(clock)
    except OSError:
        return 0.0
