"""Which rank the others wait for, and why.

The ranks of a job tell each other, through the store of torch.distributed, how long
each of their steps waited for its batch and, if they watch a model, how long their
own work took. Each writes a message for every 32 steps and waits for nobody; rank 0
reads what is there. ``leat/profile/lateness.h`` says what follows from it.
"""

from __future__ import annotations

import collections
import json
import threading
import time
from typing import Any

from leat import _native
from leat._agreement import JobStore

STEPS = 32  # That are told at once.
# An epoch that some rank has not written by then is given up.
_MOST_UNREAD = 8


class Lateness:
    """Sends one rank's waits to the others; on rank 0 also reads theirs.

    Args:
        native: the engine's loader.
        store: torch's, that all ranks share.
        name: of this loader, the same on all ranks and of no other loader.
    """

    def __init__(self, native: Any, store: Any, name: str) -> None:
        self._native = native
        self._store = JobStore(store)
        self._name = name
        self._rank = native.rank
        self._others = range(1, native.world_size)
        self._work: Any | None = None
        self._iteration = self._epoch = self._told = 0
        self._steps: list[Any] = []  # The work of each that has ended.
        self._began = 0.0
        self._unsent: collections.deque[Any] = collections.deque()
        self._unread: collections.deque[Any] = collections.deque()
        self._of_epoch: dict[int, Any] = {}
        self._reading = threading.Lock()  # Another thread may ask.

    def watch(self, work: Any) -> None:
        """Makes ``work`` measure this rank's own work in each step from now on."""
        self._work = work

    def epoch_begins(self, iteration: int, epoch: int) -> None:
        self._native.take_waits()
        self._iteration, self._epoch, self._told = iteration, epoch, 0
        self._steps.clear()
        self._began = time.perf_counter()

    def step_begins(self) -> None:
        """The batch of a step has come."""
        if self._work is not None:
            self._work.begin()

    def step_ended(self) -> None:
        """The program is about to request the next batch."""
        self._steps.append(self._work.end() if self._work is not None else None)
        if len(self._steps) >= STEPS:
            self._tell()
        elif self._unsent:
            self._send()

    def epoch_ended(self) -> None:
        self._tell()
        self._send(waits=True)
        late = self.worst(self._epoch) if self._rank == 0 else None
        if late is not None:
            _native.log_info(
                f"epoch {self._epoch}: the others wait for rank {late['rank']}: "
                f"{late['cause']}, {late['fraction']:.0%} of the time".replace("%", " %")
            )

    def worst(self, epoch: int) -> dict[str, Any] | None:
        """The rank that the others waited for, as far as rank 0 knows; only on rank 0."""
        self._read()
        with self._reading:
            lateness = self._of_epoch.get(epoch)
            return None if lateness is None else lateness.worst()

    def _tell(self) -> None:
        waits = self._native.take_waits()
        steps, self._steps = self._steps, []
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        if not steps or len(waits) != len(steps):
            return  # A step that failed, or one that was taken by another reader.
        place = (self._iteration, self._epoch, self._told)
        self._told += 1
        self._unsent.append((place, seconds, waits, steps))
        self._send()

    def _send(self, waits: bool = False) -> None:
        while self._unsent:
            place, seconds, step_waits, steps = self._unsent[0]
            if not waits and steps[-1] is not None and not steps[-1].is_known():
                return  # A device still works on it.
            self._unsent.popleft()
            own = [] if None in steps else [step.seconds() for step in steps]
            told = {
                "seconds": seconds,
                "waits": [wait for wait, _ in step_waits],
                "causes": [cause for _, cause in step_waits],
                "own": own,
            }
            if self._rank == 0:
                self._unread.append((place, told))
                self._read()
            else:
                key = self._key(place, self._rank)
                self._store.ask(lambda store: store.set(key, json.dumps(told)))

    def _read(self) -> None:
        with self._reading:
            self._read_locked()

    def _read_locked(self) -> None:
        for _ in range(len(self._unread)):
            place, mine = self._unread.popleft()
            keys = [self._key(place, rank) for rank in self._others]
            if self._store.ask(lambda store: store.check(keys)):
                said = [self._store.ask(lambda store: store.get(key)) for key in keys]
                told = [json.loads(one or "{}") for one in said]
                if all(told):
                    lateness = self._of_epoch.setdefault(place[1], _native.Lateness())
                    lateness.add([mine, *told])
            elif len(self._unread) < _MOST_UNREAD:
                self._unread.append((place, mine))
                continue
            for key in keys:
                self._store.ask(lambda store: store.delete_key(key))

    def _key(self, place: tuple[int, int, int], rank: int) -> str:
        return f"leat/steps/{self._name}/{place[0]}/{place[2]}/{rank}"


class OwnWork:
    """Measures a rank's own work between a batch and the last of its gradients.

    After that, the rank waits for the gradients of others. On a device, events measure it.

    Args:
        module: a torch.nn.Module, also one in DistributedDataParallel.
    """

    def __init__(self, module: Any) -> None:
        self._last = self._final = -1
        self._end: Any = None
        self._mark: Any = _HostMark
        self._begin: Any = None
        learning = [p for p in module.parameters() if p.requires_grad]
        if learning and learning[0].is_cuda:
            self._mark = _DeviceMark
        self._hooks = [
            parameter.register_hook(lambda _, place=place: self._gradient(place))
            for place, parameter in enumerate(learning)
        ]

    def begin(self) -> None:
        self._begin, self._end, self._last = self._mark(), None, -1

    def end(self) -> _Work | None:
        """None where no gradient came: a step of evaluation."""
        self._final = self._last
        if self._begin is None or self._end is None:
            return None
        return _Work(self._begin, self._end)

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _gradient(self, place: int) -> None:
        self._last = place
        # The order of gradients seldom changes: one mark a step is enough.
        if self._final < 0 or place == self._final:
            self._end = self._mark()


class _Work:
    def __init__(self, begin: Any, end: Any) -> None:
        self._begin = begin
        self._end = end

    def is_known(self) -> bool:
        return self._end.is_past()

    def seconds(self) -> float:
        return self._end.since(self._begin)


class _HostMark:
    def __init__(self) -> None:
        self._time = time.perf_counter()

    def is_past(self) -> bool:
        return True

    def since(self, earlier: _HostMark) -> float:
        return self._time - earlier._time


class _DeviceMark:
    """A moment of the current stream of the current device."""

    def __init__(self) -> None:
        import torch

        self._event = torch.cuda.Event(enable_timing=True)
        self._event.record()

    def is_past(self) -> bool:
        return self._event.query()

    def since(self, earlier: _DeviceMark) -> float:
        self._event.synchronize()
        return earlier._event.elapsed_time(self._event) / 1000
