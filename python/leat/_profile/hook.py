"""Times the steps of a training script that knows nothing about it.

Loaded into the script's own interpreter by ``sitecustomize``, told what to do by
the file that ``LEAT_PROFILE`` names. It needs the standard library alone, and
changes nothing but what iterating a loader does: torch's ``DataLoader`` and
Leat's loaders.
"""

from __future__ import annotations

import atexit
import collections.abc
import contextlib
import copy
import functools
import gc
import importlib.abc
import importlib.util
import json
import os
import stat
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

#: Where loaders live: module, and the classes in it whose iteration is timed.
LOADERS = {
    "torch.utils.data.dataloader": ("DataLoader",),
    "leat._loader": ("Loader",),
    "leat.torch._loader": ("DataLoader",),
}
#: How long the first rank to end waits for the others.
PATIENCE_SECONDS = 60.0
#: The largest array of a replayed batch that is copied each time: some 50 microseconds.
COPIED_BYTES = 1 << 20


class Recorder:
    """Measures one rank of one run."""

    def __init__(self, folder: str, spec: dict[str, Any]) -> None:
        self.folder = folder
        self.warmup: int = spec["warmup"]
        self.steps: int = spec["steps"]
        #: Batches to draw and then give again; 0: all come from the loader.
        self.replayed: int = spec["replayed"]
        #: Rows a rank has in the whole job; None: as the loader gives them.
        self.rows: int | None = spec["rows"]
        #: Batches to draw at the end as fast as they come.
        self.drained: int = spec["drained"]
        #: Processes that the profiler started, on all nodes.
        self.ranks: int = spec["ranks"]
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.pid = os.getpid()
        self.kept: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self.tallies: weakref.WeakKeyDictionary[Any, Tally] = weakref.WeakKeyDictionary()
        #: Of the loader that gave most; its loader may be gone.
        self.furthest: Tally | None = None
        self.is_over = False
        self.is_beginning = False
        #: A loader has been asked for its first batch.
        self.has_begun = False

    def tally_of(self, loader: Any) -> Tally:
        if loader not in self.tallies:
            self.tallies[loader] = Tally(self)
        return self.tallies[loader]

    def end(self, tally: Tally, batches: Iterator[Any], again: Callable[[], Iterator[Any]]) -> NoReturn:
        """Writes what was measured and ends the process, past all its exits."""
        self.is_over = True
        # Twice those that lie ready, so that the second half of them is made meanwhile.
        count = max(self.drained, 2 * tally.ready_ahead)
        supply, cpu = ([], None) if self.replayed else drain(batches, count, again)
        self.write(tally, supply, cpu)
        self.wait_for_others()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        end_children()
        os._exit(0)

    def write(self, tally: Tally, supply: list[float], cpu: float | None) -> None:
        record = {
            "rank": self.rank,
            "world_size": self.world_size,
            "step_seconds": tally.step_seconds,
            "wait_seconds": tally.wait_seconds,
            "seen": tally.seen,
            "supply_seconds": supply,
            "measured_from_seconds": on_monotonic_clock(tally.measured_from),
            "measured_until_seconds": on_monotonic_clock(tally.measured_until),
            "measured_batches": tally.measured_batches,
            "supply_cpu_seconds": cpu,
            "rows": tally.rows,
            "epoch_batches": tally.epoch_batches,
            **gradients(),
            "loader": tally.name,
            "workers": tally.workers,
            "loads_ahead": tally.loads_ahead,
            "is_pipelined": tally.is_pipelined,
            "accelerator": accelerator(),
            "python": sys.version.split()[0],
            "torch": getattr(sys.modules.get("torch"), "__version__", None),
        }
        path = os.path.join(self.folder, f"rank{self.rank}.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(path + ".part", path)

    def refuse_ranks_of_its_own(self) -> None:
        """Ends a script that starts its ranks itself: nobody could run fewer or tell them apart."""
        if self.world_size != self.ranks:
            self.refuse(
                f"WORLD_SIZE is {self.world_size} where {self.ranks} was to be run: the command starts the ranks itself, as "
                "torchrun and accelerate launch do, or the variable is set already. Give the command of one rank, python "
                f"train.py …, and --nproc-per-node {self.world_size}"
            )
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return
        world_size = distributed.get_world_size()
        if world_size != self.world_size:
            self.refuse(
                f"the script joined {world_size} ranks where {self.world_size} was to be run: it starts them itself, as by "
                "torch.multiprocessing.spawn. Let it take RANK, WORLD_SIZE and LOCAL_RANK from its environment, as torchrun "
                f"sets them, and give --nproc-per-node {world_size}"
            )

    def refuse(self, why: str) -> NoReturn:
        path = os.path.join(self.folder, "refused")
        with open(f"{path}-{self.pid}", "w", encoding="utf-8") as file:
            file.write(why)
        os.replace(file.name, path)  # Seen whole, though all ranks may say so.
        end_children()
        os._exit(1)  # And so does what waits for it: nothing after the training runs.

    def wait_for_others(self) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        names = [f"rank{rank}.json" for rank in range(self.world_size)]
        while time.monotonic() < ends:
            if all(os.path.exists(os.path.join(self.folder, name)) for name in names):
                return
            time.sleep(0.01)

    def leave_unfinished(self) -> None:
        """If the script ended by itself, its progress is still reported."""
        if os.getpid() == self.pid and not self.is_over and self.furthest is not None:
            self.write(self.furthest, [], None)


class Tally:
    """The steps of one loader."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.name = ""
        self.seen = 0
        self.rows: int | None = None
        self.epoch_batches: int | None = None
        #: Processes that make batches; None: threads do.
        self.workers: int | None = None
        #: Batches that worker processes have made before they are asked for, at most.
        self.ready_ahead = 0
        #: Batches are made while training computes.
        self.loads_ahead = False
        #: Bytes are fetched while others are prepared.
        self.is_pipelined = False
        self.step_seconds: list[float] = []
        self.wait_seconds: list[float] = []
        #: When the steps that count began and ended, by time.perf_counter().
        self.measured_from: float | None = None
        self.measured_until: float | None = None
        #: Batches that were given before, and in between, those that begin an epoch included.
        self.seen_before = 0
        self.measured_batches = 0


class Timed:
    """An iterator of a loader, timed from one batch to the next."""

    def __init__(self, batches: Iterator[Any], tally: Tally, again: Callable[[], Iterator[Any]]) -> None:
        self._batches = batches
        self._tally = tally
        self._again = again
        self._given: float | None = None

    def __iter__(self) -> Timed:
        return self

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)

    def __next__(self) -> Any:
        tally, recorder = self._tally, self._tally.recorder
        counts = is_training()
        is_last = counts and len(tally.step_seconds) + 1 >= recorder.steps
        if counts and (tally.seen == recorder.warmup or is_last):
            finish_device_work()
        asked = time.perf_counter()
        batch = next(self._batches)
        given = time.perf_counter()
        if not counts:
            self._given = None
            return batch
        tally.seen += 1
        if tally.seen == 1:
            recorder.refuse_ranks_of_its_own()
        if recorder.furthest is None or tally.seen > recorder.furthest.seen:
            recorder.furthest = tally
        if tally.rows is None:
            tally.rows = rows_of(batch)
        if self._given is not None and tally.seen > recorder.warmup + 1:
            if tally.measured_from is None:
                tally.measured_from = self._given
                tally.seen_before = tally.seen - 1
            tally.measured_until = given
            tally.measured_batches = tally.seen - tally.seen_before
            tally.step_seconds.append(given - self._given)
            tally.wait_seconds.append(given - asked)
            if len(tally.step_seconds) == recorder.steps:
                recorder.end(tally, self._batches, self._again)
        self._given = given
        return batch


class Replay:
    """Gives a loader's first batches again and again, an epoch's worth."""

    def __init__(self, kept: list[Any], fetch: Iterator[Any] | None, wanted: int,
                 length: int | None, rows: int | None) -> None:  # fmt: skip
        self._kept = kept
        self._fetch = fetch
        self._wanted = wanted
        self._length = length
        self._rows = rows
        self._given = 0

    def __iter__(self) -> Replay:
        return self

    def __len__(self) -> int:
        if self._length is None:
            raise TypeError("the loader has no length")
        return self._length

    def __next__(self) -> Any:
        if self._given == self._length:
            raise StopIteration
        if self._fetch is not None:
            batch = next(self._fetch, None)
            if batch is not None:
                self._kept.append(first_rows(batch, self._rows))
            if batch is None or len(self._kept) >= self._wanted:
                close(self._fetch)
                self._fetch = None
        if not self._kept:
            raise StopIteration
        self._given += 1
        return fresh(self._kept[(self._given - 1) % len(self._kept)])


def watch(cls: type, module: str, recorder: Recorder) -> None:
    """Makes iterating a loader of this class timed; `module` is its key in LOADERS."""
    begin = cls.__dict__.get("__iter__")
    if begin is None:
        return

    @functools.wraps(begin)
    def __iter__(loader: Any) -> Any:  # noqa: N807
        if os.getpid() != recorder.pid or recorder.is_over or recorder.is_beginning:
            return begin(loader)
        tally = recorder.tally_of(loader)
        with contextlib.suppress(Exception):  # Not every loader has a length.
            tally.epoch_batches = len(loader)
        tally.name = f"{type(loader).__module__}.{type(loader).__qualname__}"
        with contextlib.suppress(Exception):  # A loader may lie about its class.
            note_ways(tally, module, loader)
        batches = replay(loader, begin, recorder) if recorder.replayed else begun(loader, begin, recorder)
        return Timed(iter(batches), tally, lambda: iter(begun(loader, begin, recorder)))

    cls.__iter__ = __iter__  # type: ignore[attr-defined]


def note_ways(tally: Tally, module: str, loader: Any) -> None:
    """Notes how a loader of this module, a key of LOADERS, makes its batches."""
    is_engine = module == "leat._loader"
    in_threads = False
    if module == "leat.torch._loader":  # Which is torch's with more ways to go.
        is_engine = loader._engine is not None
        in_threads = not loader._is_torchs and (loader.num_workers > 0 or loader.threads != 1)
    tally.loads_ahead = is_engine or loader.num_workers > 0
    tally.is_pipelined = is_engine or (in_threads and loader.num_workers > 0)
    if not is_engine and not in_threads:
        tally.workers = loader.num_workers
        tally.ready_ahead = loader.num_workers * (loader.prefetch_factor or 0)


def begun(loader: Any, begin: Callable[[Any], Any], recorder: Recorder) -> Any:
    """The objects that iterate; one loader that stands on another is timed
    once."""
    recorder.is_beginning = recorder.has_begun = True
    try:
        return begin(loader)
    finally:
        recorder.is_beginning = False


def replay(loader: Any, begin: Callable[[Any], Any], recorder: Recorder) -> Replay:
    kept = recorder.kept.setdefault(loader, [])
    try:
        length = len(loader)
    except (TypeError, NotImplementedError):
        length = None
    wanted = min(recorder.replayed, length) if length else recorder.replayed
    fetch = iter(begun(loader, begin, recorder)) if len(kept) < wanted else None
    if fetch is not None:
        kept.clear()
    return Replay(kept, fetch, wanted, length, recorder.rows)


def close(batches: Any) -> None:
    """Ends what fetches ahead, so that it costs the replayed steps nothing."""
    for name in ("_shutdown_workers", "close"):
        with contextlib.suppress(Exception):
            getattr(batches, name)()
            return


def is_training() -> bool:
    torch = sys.modules.get("torch")
    return torch is None or bool(torch.is_grad_enabled())


def finish_device_work() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def on_monotonic_clock(at: float | None) -> float | None:
    """Converts a time of time.perf_counter(), which may be another clock."""
    return None if at is None else at + (time.monotonic() - time.perf_counter())


def accelerator() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())


def drain(
    batches: Iterator[Any], count: int, again: Callable[[], Iterator[Any]]
) -> tuple[list[float], float | None]:
    """How long each batch takes when nobody trains on it, and the CPU time of one.

    An epoch that ends before `count` batches is begun `again`, as often as it takes. None,
    if that gives no more batches: those that came may all have been made before.

    CPU time is taken over the second half: the first batches were made before. It is
    read after each batch, since workers that end with the epoch take theirs along.
    """
    seconds: list[float] = []
    half = count // 2
    total, counted = 0.0, 0
    last: float | None = None
    is_new = False
    begin = time.perf_counter()
    while len(seconds) < count:
        try:
            next(batches)
        except StopIteration:
            if is_new:  # Nothing comes of it any more.
                return [], None
            try:
                batches, is_new = again(), True
            except Exception:  # It may be for one epoch alone.
                return [], None
            last = cpu_seconds() if len(seconds) >= half else None
            begin = time.perf_counter()
            continue
        seconds.append(time.perf_counter() - begin)
        is_new = False
        if len(seconds) >= half:
            used = cpu_seconds()
            if last is not None:
                total, counted = total + max(used - last, 0), counted + 1
            last = used
        begin = time.perf_counter()
    return seconds, total / counted if counted else None


def cpu_seconds() -> float:
    """The CPU seconds of this process and its workers."""
    used = time.process_time()
    multiprocessing = sys.modules.get("multiprocessing")
    for child in multiprocessing.active_children() if multiprocessing else ():
        with contextlib.suppress(OSError, IndexError, ValueError):
            with open(f"/proc/{child.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def gradients() -> dict[str, int]:
    """The gradients that DistributedDataParallel reduces in a step: bytes, and in
    how many buckets."""
    module = sys.modules.get("torch.nn.parallel.distributed")
    if module is None:
        return {}
    for found in gc.get_objects():
        if type(found) is not module.DistributedDataParallel:
            continue
        size = sum(p.numel() * p.element_size() for p in found.parameters() if p.requires_grad)
        buckets = 0
        with contextlib.suppress(Exception):  # torch's own, and not promised.
            told = found._get_ddp_logging_data()
            sizes = told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes") or ""
            buckets = len([one for one in str(sizes).split(",") if one.strip()])
        return {"gradient_bytes": size, "gradient_buckets": buckets}
    return {}


def leaves(batch: Any) -> Iterator[Any]:
    if isinstance(batch, dict):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, (list, tuple)):
        for value in batch:
            yield from leaves(value)
    else:
        yield batch


def is_ragged(value: Any) -> bool:
    """Whether it is a `leat.Ragged`; the script may have no Leat."""
    return type(value).__name__ == "Ragged" and hasattr(value, "offsets")


def rows_of(batch: Any) -> int | None:
    """The first dimension of the first array in a batch, or the length of its first `leat.Ragged`."""
    for leaf in leaves(batch):
        if is_ragged(leaf):
            return len(leaf)
        shape = getattr(leaf, "shape", None)
        if shape is not None and len(shape) > 0:
            return int(shape[0])
    return None


def first_rows(batch: Any, rows: int | None) -> Any:
    """The first rows of every array and list that is as long as the batch."""
    whole = rows_of(batch)
    if rows is None or whole is None or whole <= rows:
        return batch

    def cut(value: Any) -> Any:
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 0:
            return value[:rows] if shape[0] == whole else value
        if is_ragged(value) and len(value) == whole:
            shapes = None if value.shapes is None else value.shapes[:rows]
            return type(value)(value.values[: int(value.offsets[rows])], value.offsets[: rows + 1], shapes)
        if isinstance(value, dict):
            return type(value)((key, cut(one)) for key, one in value.items())
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(cut, value))
        if isinstance(value, (list, tuple)):
            if len(value) == whole and not any(hasattr(one, "shape") for one in value):
                return value[:rows]
            return type(value)(map(cut, value))
        return value

    return cut(batch)


def fresh(batch: Any) -> Any:
    """The batch as a loader would give it anew: a script may take it apart, and work in its arrays.

    Containers are made anew, and so are arrays in memory of at most COPIED_BYTES. Others stay as they are: a copy
    would be part of the step. So does what raises when it is looked at.
    """
    try:
        return _fresh(batch)
    except Exception:  # A class may lack what others of its kind have: a sparse tensor has no nbytes.
        return batch


def _fresh(batch: Any) -> Any:
    if isinstance(batch, collections.abc.MutableMapping):
        made = copy.copy(batch)
        for key in list(batch.keys()):  # Iterating over a TensorDict gives its rows.
            made[key] = fresh(batch[key])
        return made
    if is_ragged(batch):
        return type(batch)(fresh(batch.values), fresh(batch.offsets), fresh(batch.shapes))
    if type(batch) is list:
        return [fresh(one) for one in batch]
    if type(batch) is tuple:
        return tuple(fresh(one) for one in batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(fresh, batch))
    if getattr(batch, "nbytes", COPIED_BYTES + 1) > COPIED_BYTES:
        return batch
    if type(batch).__module__ == "numpy" and hasattr(batch, "copy"):
        return batch.copy()
    torch = sys.modules.get("torch")
    if torch is not None and type(batch) is torch.Tensor and batch.device.type == "cpu":
        # One in pinned memory is copied to a device otherwise than its clone would be.
        is_pinned = torch.cuda.is_available() and batch.is_pinned()
        return batch if is_pinned or batch.requires_grad else batch.clone()
    return batch


def end_children() -> None:
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            with contextlib.suppress(Exception):
                child.kill()


def is_worker(recorder: Recorder) -> bool:
    """This is no rank itself, but a process that one has started, by fork or anew."""
    process = sys.modules.get("multiprocessing.process")
    return os.getpid() != recorder.pid or (process is not None and process.parent_process() is not None)


def note(folder: str, kind: str, what: str) -> None:
    """Writes `what` down, for this process."""
    with contextlib.suppress(OSError):
        out = os.open(os.path.join(folder, f"{kind}-{os.getpid()}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(out, os.fsencode(what) + b"\0")
        os.close(out)


def no_data(folder: str) -> tuple[str, ...]:
    """The prefixes of paths that are no data of the script's: Python's own, the
    system's, ours."""
    folders = [folder, "/proc", "/sys", os.path.dirname(os.__file__)]
    # Folders of an environment; a project may lie in the same folder.
    for prefix in {sys.prefix, sys.base_prefix}:
        folders += [os.path.join(prefix, name) for name in ("bin", "etc", "include", "lib", "lib64", "share")]
    return tuple(os.path.join(one, "") for one in folders)


def note_opened_files(folder: str) -> None:
    """Writes down which files the script reads, in this process and its forks."""
    seen: set[str] = set()
    # Leat opens its files by itself, and notes them there.
    os.environ["LEAT_PROFILE_NOTES"] = folder
    ours = no_data(folder)

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(args[0], (str, bytes)):
            return
        if isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        path = os.path.abspath(os.fsdecode(args[0]))
        if path in seen or path.startswith(ours) or path.endswith((".py", ".pyc")):
            return
        seen.add(path)
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.stat(path).st_mode):
                note(folder, "opened", path)

    sys.addaudithook(hear)


def note_connections(folder: str, makes_batches: Callable[[], bool]) -> None:
    """Writes down where Python code connects to while it makes batches.

    Leaves out the profiler's own endpoint, the place where the ranks meet, and a
    machine's requests to itself (link-local: its credentials).
    """
    seen: set[str] = set()
    known = [os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")]
    meeting = os.environ.get("MASTER_PORT")

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if event != "socket.connect" or not isinstance(args[1], tuple) or not makes_batches():
            return
        host, port = args[1][:2]
        place = f"{host}:{port}"
        if place in seen or any(f"//{place}/" in url for url in known):
            return
        if port == 53 or str(port) == meeting or str(host).startswith("169.254."):
            return
        seen.add(place)
        note(folder, "connected", place)

    sys.addaudithook(hear)


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls back once a module of LOADERS has been imported."""

    def __init__(self, found: Callable[[str], None]) -> None:
        self._found = found
        self._busy: set[str] = set()

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in LOADERS or name in self._busy:
            return None
        self._busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy.discard(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            self._found(name)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install(spec_path: str) -> None:
    """Begins; called once, before the script's first line."""
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    recorder = Recorder(os.path.dirname(spec_path), spec)

    def found(name: str) -> None:
        for cls in LOADERS[name]:
            watch(getattr(sys.modules[name], cls), name, recorder)

    for name in LOADERS:
        if name in sys.modules:
            found(name)
    sys.meta_path.insert(0, AfterImport(found))
    if spec["notes_files"]:
        note_opened_files(recorder.folder)
        note_connections(recorder.folder, lambda: recorder.has_begun or is_worker(recorder))
    atexit.register(recorder.leave_unfinished)
