"""The devices of bench/gpu_bench.py: a card, and one that sleeps in its place.

A device takes batches in their order. It copies a batch while it computes the steps before, and at most AHEAD steps
wait for it: the training loop is held back then, as by an optimizer that reads a loss. Afterwards it tells how long it
computed. `Card` measures that by CUDA events, and its copies by torch's profiler. `Fake` sleeps for the time of a
step, and copies at a bandwidth that it is told; both are measured in the same way by those who use it.
"""

from __future__ import annotations

import abc
import ctypes
import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

AHEAD = 2
BEFORE_TRACE = 20
"""Steps of a card before its copies are looked at: a new loader is not at speed yet."""
_SAMPLED_EACH = 0.02  # Seconds between two looks at whether the device is busy.

Span = tuple[float, float]


class Measured(NamedTuple):
    """A training, from its first batch until the device was done."""

    seconds: float
    samples: int
    busy: float  # Share of the time in which steps ran, by the device's events.
    sampled: float | None  # The same, as the driver says it; None: it does not.
    checksum: int  # The values of each batch's last field, added up where the steps ran.


class Copies(NamedTuple):
    """The way of the bytes to the device."""

    hidden: float | None  # Share of the copies' time in which a step ran; None: nothing was copied.
    pinned: float | None  # Share of their time from page-locked memory; None: the device knows no such memory.


class Held(NamedTuple):
    """A batch that lies on the device."""

    batch: tuple[Any, ...]


def hidden_share(copies: list[Span], steps: list[Span]) -> float | None:
    """The share of the copies' time in which a step ran. Spans of one list may overlap each other."""
    total = sum(end - begin for begin, end in copies)
    if total <= 0:
        return None
    hidden = 0.0
    merged = _merged(steps)
    for begin, end in copies:
        hidden += sum(max(0.0, min(end, until) - max(begin, since)) for since, until in merged)
    return hidden / total


def _merged(spans: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


class Device(abc.ABC):
    """A place where steps run.

    Threads: one at a time.
    """

    name: str
    loader_options: dict[str, Any]  # Arguments of leat.Loader, for batches that this device takes.

    @abc.abstractmethod
    def begin(self, work: str) -> None:
        """Forgets what was measured before. The steps that follow are of this training."""

    @abc.abstractmethod
    def step(self, batch: Any) -> None:
        """Trains on a batch, or on a held one. Returns at once unless AHEAD steps wait."""

    @abc.abstractmethod
    def finish(self) -> tuple[float, int]:
        """Waits for all steps; the seconds in which they ran, and the checksum."""

    @abc.abstractmethod
    def hold(self, batch: tuple[Any, ...]) -> Held:
        """Puts a batch into the device's memory."""

    @abc.abstractmethod
    def usage(self) -> float | None:
        """The share of the last moment in which the device computed, as its driver says it."""

    @abc.abstractmethod
    def trace(self, work: str, batches: Iterable[Any], steps: int) -> Copies:
        """Trains on some batches, and then on so many, of which it looks at each copy."""

    def train(self, work: str, batches: Iterable[Any]) -> Measured:
        """Trains on all batches."""
        self.begin(work)
        samples, began = 0, None
        with _Sampler(self.usage) as sampler:
            for batch in batches:
                if began is None:
                    began = time.perf_counter()
                    sampler.start()
                samples += len((batch.batch if isinstance(batch, Held) else batch)[0])
                self.step(batch)
            busy, checksum = self.finish()
        seconds = time.perf_counter() - (began or time.perf_counter())
        if not samples:
            sys.exit("gpu: there was no batch to train on")
        return Measured(seconds, samples, busy / seconds, sampler.mean(), checksum)


class _Sampler:
    """Looks again and again, on a thread of its own."""

    def __init__(self, look: Callable[[], float | None]) -> None:
        self._look = look
        self._seen: list[float] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leat-sampler")

    def start(self) -> None:
        self._thread.start()

    def mean(self) -> float | None:
        return sum(self._seen) / len(self._seen) if self._seen else None

    def _run(self) -> None:
        while not self._ends.wait(_SAMPLED_EACH):
            seen = self._look()
            if seen is None:
                return
            self._seen.append(seen)

    def __enter__(self) -> _Sampler:
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.set()
        if self._thread.ident is not None:
            self._thread.join()


# --- a card ---------------------------------------------------------------------


class Nvml:
    """The driver's word about a card: by its own library, so that no package is needed."""

    class _Rates(ctypes.Structure):
        _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))

    def __init__(self, uuid: str, library: str = "libnvidia-ml.so.1") -> None:
        self._handle = ctypes.c_void_p()
        self._library: Any = None
        try:
            found = ctypes.CDLL(library)
        except OSError:
            return
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        if found.nvmlInit_v2() == 0 and found.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self._handle)) == 0:
            self._library = found

    def usage(self) -> float | None:
        """The share of the driver's last sampling time in which a kernel ran; None if it does not tell."""
        rates = self._Rates()
        if self._library is None or self._library.nvmlDeviceGetUtilizationRates(self._handle, ctypes.byref(rates)) != 0:
            return None
        return float(rates.gpu) / 100


class Card(Device):
    """The first CUDA device that torch finds. Its trainings are those of bench/gpu_models.py."""

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            sys.exit("gpu: torch finds no card here; --fake runs the same on a device that sleeps")
        self._torch = torch
        self._device = torch.device("cuda", torch.cuda.current_device())
        properties = torch.cuda.get_device_properties(self._device)
        self.name = properties.name
        self.loader_options = {"output": "torch", "device": str(self._device)}
        self._nvml = Nvml(str(getattr(properties, "uuid", "")))
        self._trainings: dict[str, Any] = {}
        self._marks: list[tuple[Any, Any]] = []

    def begin(self, work: str) -> None:
        import gpu_models

        if work not in self._trainings:
            self._trainings = {work: gpu_models.Training(work, self._device)}  # One at a time has the memory.
        self._training = self._trainings[work]
        self._marks = []
        self._checksum = self._torch.zeros((), dtype=self._torch.int64, device=self._device)
        self._torch.cuda.synchronize()

    def step(self, batch: Any) -> None:
        fields = batch.batch if isinstance(batch, Held) else batch
        first, last = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        self._checksum += fields[-1].to(self._torch.int64).sum()
        self._training.step(*fields)
        last.record()
        self._marks.append((first, last))
        if len(self._marks) > AHEAD:
            self._marks[-1 - AHEAD][1].synchronize()

    def finish(self) -> tuple[float, int]:
        self._torch.cuda.synchronize()
        return sum(first.elapsed_time(last) for first, last in self._marks) / 1e3, int(self._checksum)

    def hold(self, batch: tuple[Any, ...]) -> Held:
        return Held(tuple(field.to(self._device) for field in batch))

    def usage(self) -> float | None:
        return self._nvml.usage()

    def join_ranks(self) -> None:
        """From now on, gradients of the training that began are exchanged between the ranks of the job."""
        self._training.compute = self._torch.nn.parallel.DistributedDataParallel(self._training.network)

    def trace(self, work: str, batches: Iterable[Any], steps: int) -> Copies:
        profiler = self._torch.profiler
        self.begin(work)
        batches = iter(batches)
        for batch in itertools.islice(batches, BEFORE_TRACE):
            self.step(batch)
        self.finish()
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as told:
            for batch in itertools.islice(batches, steps):
                self.step(batch)
            self.finish()
        on_card = [event for event in told.events() if event.device_type == self._torch.autograd.DeviceType.CUDA]
        return copies_of([(event.name, (event.time_range.start, event.time_range.end)) for event in on_card])


def copies_of(events: list[tuple[str, Span]]) -> Copies:
    """The same from the names and times that torch's profiler saw on a card."""
    copies = [(name, span) for name, span in events if "HtoD" in name]
    steps = [span for name, span in events if not name.startswith(("Memcpy", "Memset"))]
    total = sum(end - begin for _, (begin, end) in copies)
    pinned = sum(end - begin for name, (begin, end) in copies if "Pinned" in name)
    return Copies(hidden_share([span for _, span in copies], steps), pinned / total if total else None)


# --- in its place ----------------------------------------------------------------


class Fake(Device):
    """Sleeps as long as `steps` says that a step of a training takes, and copies `bandwidth` bytes a second.

    Its copies and steps have threads of their own. Times are those of the model: a thread that wakes late does not
    make the next step late.
    """

    def __init__(self, steps: dict[str, float], bandwidth: float = 20e9) -> None:
        told = ", ".join(f"{1e3 * step:g} ms for {work}" for work, step in steps.items())
        self.name = f"a device that sleeps: {told}"
        self.loader_options = {"output": "numpy"}
        self._seconds = steps
        self._bandwidth = bandwidth
        self._to_copy: queue.Queue[int] = queue.Queue()
        self._to_compute: queue.Queue[float] = queue.Queue()
        for name, run in (("leat-copies", self._copy), ("leat-steps", self._compute)):
            threading.Thread(target=run, name=name, daemon=True).start()

    def begin(self, work: str) -> None:
        self._step = self._seconds[work]
        self._room = threading.Semaphore(AHEAD + 1)
        self._is_computing = False
        self._checksum = self._given = 0
        self._copies: list[Span] = []
        self._steps: list[Span] = []

    def step(self, batch: Any) -> None:
        is_held = isinstance(batch, Held)
        fields = batch.batch if is_held else batch
        self._room.acquire()
        self._checksum += int(fields[-1].astype("int64").sum())
        self._given += 1
        self._to_copy.put(0 if is_held else sum(field.nbytes for field in fields))

    def finish(self) -> tuple[float, int]:
        for _ in range(AHEAD + 1):
            self._room.acquire()
        return sum(end - begin for begin, end in self._steps), self._checksum

    def hold(self, batch: tuple[Any, ...]) -> Held:
        return Held(batch)

    def usage(self) -> float | None:
        return float(self._is_computing)

    def trace(self, work: str, batches: Iterable[Any], steps: int) -> Copies:
        self.begin(work)
        for batch in itertools.islice(batches, steps):
            self.step(batch)
        self.finish()
        return Copies(hidden_share(self._copies, self._steps), None)

    def _copy(self) -> None:
        ended = 0.0
        while True:
            size = self._to_copy.get()
            began = max(time.perf_counter(), ended)
            ended = began + size / self._bandwidth
            _sleep_until(ended)
            if size:
                self._copies.append((began, ended))
            self._to_compute.put(ended)

    def _compute(self) -> None:
        ended = 0.0
        while True:
            began = max(self._to_compute.get(), ended)
            self._is_computing = True
            ended = began + self._step
            _sleep_until(ended)
            self._is_computing = False
            self._steps.append((began, ended))
            self._room.release()


def _sleep_until(moment: float) -> None:
    while (left := moment - time.perf_counter()) > 0:
        time.sleep(left)
