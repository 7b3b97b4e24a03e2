"""Finds the rank that the others wait for, and the cause.

The ranks of a job tell each other (`leat._job._talk`) how long each of their steps waited for its
batch and, if they watch a model, how long their own work took. Steps go in blocks of 32. A
message has the last few blocks that all ranks below its sender have reported, so that rank 0
sees the same steps of all ranks. ``leat/profile/lateness.h`` draws the conclusion.

Messages stay small. If steps are so short that blocks end faster than messages go, a rank reports
only every second, fourth, … block: all ranks use powers of two, so that they report the same ones. If ranks are
many, a message has sums of neighbouring steps: a block of all ranks has at most 4,096 values.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import Any

from leat import _native
from leat._job import _talk

STEPS = 32  # A block has so many.
KEPT = 8
"""Blocks of a message. A block that some rank has not told by then is given up."""
VALUES = 4096
"""A block of all ranks has at most so many."""
_BLOCKS_A_ROUND = 2
_LARGEST_STRIDE = 1 << 20
_NO_WAIT = "storage"
"""The cause of a wait of 0 s."""
_EPOCHS = 256
"""The lateness of this many epochs is remembered."""
_SECONDS_TO_SAY = 5.0


class Lateness:
    """One rank's waits, and on rank 0 those of all.

    Threads: `step_begins`, `step_ended`, `epoch_begins`, `epoch_ended` and `watch` by the
        training thread; `worst` by any; the others, a `Topic`'s, by that of the talk.

    Args:
        native: the engine's loader.
        place: the number of this process, and of all; None: its rank and world size.
        waits: False: it reads nothing, so that no step waits for it.
    """

    name = "steps"
    is_heard = False

    def __init__(self, native: Any, place: tuple[int, int] | None = None, *, waits: bool = True) -> None:
        self._native = native
        self._rank: int
        self._world_size: int
        self._rank, self._world_size = place or (native.rank, native.world_size)
        self._waits = waits
        self.take_waits: Callable[[], list[tuple[float, str]]] | None = None
        """Those of the steps since the last call, if not all are the engine's."""
        self._work: Any | None = None
        self._iteration = self._epoch = self._told = 0
        self._steps: list[Any] = []  # The work of each that has ended.
        self._began = 0.0
        self._ended: collections.deque[_Block] = collections.deque()  # To the talk's thread.
        # The rest is the talk's.
        self._own: dict[str, Any] = {}
        self._joined: dict[str, Any] = {}
        self._last: _Block | None = None  # That of the epoch which ended last.
        self._unsaid: list[_Block] = []  # Last blocks of epochs that nothing was said of yet.
        self._done: collections.deque[str] = collections.deque(maxlen=4 * KEPT)
        self._of_epoch: dict[int, Any] = {}

    def watch(self, work: Any) -> None:
        """Makes ``work`` measure this rank's own work in each step from now on."""
        self._work = work

    def epoch_begins(self, iteration: int, epoch: int) -> None:
        self._taken()
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
            self._end_block(is_last=False)

    def epoch_ended(self) -> None:
        self._end_block(is_last=True)

    def _end_block(self, is_last: bool) -> None:
        steps, self._steps = self._steps, []
        waits = self._taken() if self._waits else [(0.0, _NO_WAIT)] * len(steps)
        now = time.perf_counter()
        seconds, self._began = now - self._began, now
        number, self._told = self._told, self._told + 1
        # Else a step failed, or another reader took one.
        if len(waits) == len(steps) and (steps or is_last):
            place = (self._iteration, self._epoch, number)
            self._ended.append(_Block(place, is_last, seconds, waits, steps))

    def _taken(self) -> list[tuple[float, str]]:
        return self._native.take_waits() if self.take_waits is None else self.take_waits()

    def worst(self, epoch: int) -> dict[str, Any] | None:
        """The rank that the others waited for, as far as rank 0 knows; only on rank 0."""
        lateness = self._of_epoch.get(epoch)
        return None if lateness is None else lateness.worst()

    def own(self) -> dict[str, Any]:
        period = _talk.seconds_between_rounds(self._world_size)
        while self._ended and self._ended[0].is_known():
            block = self._ended.popleft()
            if block.is_last:
                self._last = block
                if self._rank == 0:
                    self._unsaid.append(block)
            if block.is_last or block.number % block.stride(period) == 0:
                self._own[block.place] = {str(self._rank): block.told(self._world_size)}
        _keep_last(self._own, KEPT)
        return self._own

    def join(self, told: list[dict[str, Any]]) -> dict[str, Any]:
        self._joined = {
            place: {rank: steps for part in told for rank, steps in part[place].items()}
            for place in told[0]
            if all(place in part for part in told)
        }
        return self._joined

    def conclude(self, joined: dict[str, Any]) -> None:
        for place, ranks in joined.items():
            if place in self._done:
                continue
            self._done.append(place)
            epoch = int(place.split()[1])
            lateness = self._of_epoch.setdefault(epoch, _native.Lateness())
            lateness.add([ranks[str(rank)] for rank in range(self._world_size)])
        _keep_last(self._of_epoch, _EPOCHS)
        self._say_of_ended()

    def hear(self, concluded: Any) -> None:
        raise AssertionError("rank 0 keeps what it concludes")

    def awaits(self) -> bool:
        return self._last is not None and self._last.place not in self._joined

    def _say_of_ended(self) -> None:
        unsaid, self._unsaid = self._unsaid, []
        for block in unsaid:
            if block.place not in self._done and time.perf_counter() - block.ended < _SECONDS_TO_SAY:
                self._unsaid.append(block)
            elif late := self.worst(block.epoch):
                _native.log_info(
                    f"epoch {block.epoch}: the others wait for rank {late['rank']}: "
                    f"{late['cause']}, {late['fraction']:.0%} of the time".replace("%", " %")
                )


def _keep_last(kept: dict[Any, Any], count: int) -> None:
    for key in list(kept)[:-count]:
        del kept[key]


class _Block:
    """Steps of one rank that are told together."""

    def __init__(
        self, place: tuple[int, int, int], is_last: bool, seconds: float, waits: list[tuple[float, str]],
        work: list[Any],
    ) -> None:  # fmt: skip
        self.place = " ".join(map(str, place))
        _, self.epoch, self.number = place
        self.is_last = is_last
        self.ended = time.perf_counter()
        self._seconds = seconds
        self._waits = waits
        self._work = work

    def is_known(self) -> bool:
        """Whether a device has done the steps; of the last one, which the end waits for, always."""
        return self.is_last or self._work[-1] is None or self._work[-1].is_known()

    def stride(self, period: float) -> int:
        """One of this many such blocks is told: a power of two."""
        stride = 1
        while stride * self._seconds * _BLOCKS_A_ROUND < period and stride < _LARGEST_STRIDE:
            stride *= 2
        return stride

    def told(self, world_size: int) -> dict[str, Any]:
        """As `_native.Lateness` takes it; sums of steps where ranks are many."""
        size = -(-STEPS // max(1, VALUES // world_size))
        parts = [slice(begin, begin + size) for begin in range(0, len(self._waits), size)]
        own = [] if None in self._work else [step.seconds() for step in self._work]
        return {
            "seconds": round(self._seconds, 6),
            "waits": [round(sum(wait for wait, _ in self._waits[part]), 6) for part in parts],
            "causes": [max(self._waits[part])[1] for part in parts],
            "own": [round(sum(own[part]), 6) for part in parts] if own else [],
        }


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
