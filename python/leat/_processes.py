"""Worker processes that call functions of the user's: Python on all cores.

A thread of the engine that calls such a function takes a worker, puts the values into the
memory that it shares with it (a file without a name, which leaves nothing behind),
sends a short message, and waits for the answer without the interpreter's lock. The worker
calls the function with copies of its own, and puts the result into the same memory. So one
of the two writes there at a time.

A worker ends when it is told to, or its connection closes, and at once when this process ends,
however it does. A forked child of this process has copies of all pipes, so none of this waits
for a pipe that only the last copy closes.
"""

from __future__ import annotations

import ast
import contextlib
import mmap
import os
import pathlib
import pickle
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from leat import _functions
from leat.errors import Error

_ALIGNMENT = 64
_GROWTH = 1 << 20
_SECONDS_TO_END = 5.0
_SECONDS_TO_RETURN = 1.0


class Shipped:
    """A function as a worker gets it.

    Args:
        name: of its op, for messages.
        place, function, draws_globally, fields: as for `call_per_sample`.

    Raises:
        Exception: any kind; the function cannot be pickled.
    """

    def __init__(
        self, name: str, place: int, function: Callable[..., Any], draws_globally: bool, fields: tuple[str, ...]
    ) -> None:
        self.name = name
        self.place = place
        self.pickled = pickle.dumps((function, place, draws_globally, fields))


class Processes:
    """Workers of one loader: as many as threads call at once, within a limit.

    Threads:  any. One that finds all workers busy waits for one.
    Lifetime: ends with close(). A forked child has no workers, and does not end its
              parent's.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pid = os.getpid()
        self._changed = threading.Condition()
        # Guarded by _changed.
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._count = 0  # The idle ones, those that are busy, and those that start.
        self._is_closed = False
        self._are_kept = True

    def call(self, shipped: Shipped, value: Any, numbers: tuple[int, ...]) -> Any:
        """The result of the function, or its exception.

        Raises:
            leat.Error: the worker died, or `stop` was called.
        """
        worker = self._take(shipped)
        try:
            return worker.call(shipped, value, numbers)
        except _DiedError as died:
            raise Error(died.says(shipped)) from None
        finally:
            self._give_back(worker)

    def start(self, count: int, functions: Sequence[Shipped]) -> None:
        """Starts this many workers, or as many as the limit lets, which then have the functions.

        Raises:
            Exception: any kind; a worker did not start, or does not find what a function needs.
        """
        workers: list[_Worker] = []
        try:
            while len(workers) < min(count, self._limit) and self._may_start():
                workers.append(self._started(functions[0]))
            for worker in workers:
                worker.begin()
                for shipped in functions:
                    worker.load(shipped)
        except BaseException as error:
            for worker in workers:
                worker.close()
            if isinstance(error, _DiedError):
                raise Error(error.says(functions[0])) from None
            raise
        finally:
            for worker in workers:
                self._give_back(worker)

    def stop(self) -> None:
        """Lets no call begin, and ends the calls that do not return in a second.

        To be called before the threads that call are waited for.
        """
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy, _SECONDS_TO_RETURN)
            for worker in self._busy:
                worker.kill()

    def dismiss(self) -> None:
        """Ends each worker once it is idle. A call may still come: it has a worker, which ends after it."""
        with self._changed:
            self._are_kept = False
        self._end_idle()

    def close(self) -> None:
        """Ends the workers."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._is_closed = True
        self._end_idle()

    def _end_idle(self) -> None:
        with self._changed:
            workers, self._idle = self._idle, []
            self._count -= len(workers)
            self._changed.notify_all()
        for worker in workers:
            worker.close()
        deadline = time.monotonic() + _SECONDS_TO_END
        for worker in workers:
            worker.end(deadline)

    def _take(self, shipped: Shipped) -> _Worker:
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._count < self._limit or self._is_closed)
            if self._is_closed:
                raise Error(f"{shipped.name}: {_CLOSED}")
            if self._idle:
                self._busy.append(self._idle.pop())
                return self._busy[-1]
            self._count += 1
        worker = self._started(shipped)
        with self._changed:
            self._busy.append(worker)
            if self._is_closed:  # `stop` has not seen it.
                worker.kill()
        try:
            worker.begin()
        except _DiedError as died:
            self._give_back(worker)
            raise Error(died.says(shipped)) from None
        return worker

    def _may_start(self) -> bool:
        with self._changed:
            if self._count >= self._limit or self._is_closed:
                return False
            self._count += 1
            return True

    def _started(self, shipped: Shipped) -> _Worker:
        """A new worker, which `_count` has already."""
        try:
            return _Worker(shipped)
        except BaseException:
            self._has_ended()
            raise

    def _give_back(self, worker: _Worker) -> None:
        with self._changed:
            if worker in self._busy:  # Those of `start` are not.
                self._busy.remove(worker)
                self._changed.notify_all()
            if self._are_kept and not self._is_closed and worker.is_usable:
                self._idle.append(worker)
                self._changed.notify()
                return
        worker.end()
        self._has_ended()

    def _has_ended(self) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify()


class _DiedError(Exception):
    """A worker has ended by itself, or `_Worker.kill` has ended it."""

    def __init__(self, pid: int | None, exit_code: int | None, *, has_begun: bool, is_killed: bool) -> None:
        super().__init__()
        self._pid = pid
        self._exit_code = exit_code
        self._has_begun = has_begun
        self._is_killed = is_killed

    def says(self, shipped: Shipped) -> str:
        if self._is_killed:
            return f"{shipped.name}: {_CLOSED}"
        how = f"exit code {self._exit_code}"
        if self._exit_code is not None and self._exit_code < 0:
            how = f"signal {signal.Signals(-self._exit_code).name}"
        if not self._has_begun:
            return (
                f"{shipped.name}: its worker process {self._pid} ended before it was ready ({how}); what it "
                'wrote to stderr says why. workers="threads" needs no processes'
            )
        return (
            f"{shipped.name}: its worker process {self._pid} died during a call ({how}). The system kills "
            "processes when memory is short, and a mistake in C code kills its own process: "
            'workers="threads" calls the function in this process'
        )


class _Worker:
    """One process, from this side. Threads: one at a time."""

    def __init__(self, shipped: Shipped) -> None:
        import multiprocessing

        context: Any = multiprocessing.get_context(_start_method())
        self._region = Region.make()
        self._connection, theirs = context.Pipe()
        self._known: set[int] = set()
        self._has_begun = False
        self._is_killed = False
        self.is_usable = True
        self._process = context.Process(
            target=_serve, args=(theirs, self._region), name="leat-function", daemon=True
        )
        try:
            with _starting:
                self._process.start()
        except (OSError, EOFError, RuntimeError) as error:
            self.is_usable = False
            self._region.close()
            raise Error(
                f"{shipped.name}: a worker process cannot be started ({type(error).__name__}: {error}); "
                'workers="threads" needs none'
            ) from error
        finally:
            theirs.close()

    def begin(self) -> None:
        """Waits until the worker listens. Raises `_DiedError` if it never does."""
        self._receive()
        self._has_begun = True

    def load(self, shipped: Shipped) -> None:
        """Gives it a function, unless it has it. Raises what unpickling raises there."""
        if shipped.place not in self._known:
            self._ask(("load", shipped.place, shipped.pickled))
            self._known.add(shipped.place)

    def call(self, shipped: Shipped, value: Any, numbers: tuple[int, ...]) -> Any:
        self.load(shipped)
        is_joint = isinstance(value, tuple)
        parts = self._region.put(value if is_joint else (value,))
        made = self._region.take(self._ask(("call", shipped.place, numbers, is_joint, parts)))
        return tuple(made) if is_joint else made[0]

    def close(self) -> None:
        """Tells it to end; returns at once."""
        self.is_usable = False
        if not self._connection.closed:
            with contextlib.suppress(OSError):  # It has ended since.
                self._connection.send_bytes(_END)
            self._connection.close()

    def kill(self) -> None:
        """Ends it during a call, since the loader is closed; the call then raises `_DiedError`. Threads: any."""
        self._is_killed = True
        self._process.kill()

    def end(self, deadline: float | None = None) -> None:
        """Ends it, and waits for that until then, or a while."""
        self.close()
        self._process.join(_SECONDS_TO_END if deadline is None else max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._region.close()

    def _ask(self, message: tuple[Any, ...]) -> Any:
        try:
            self._connection.send_bytes(pickle.dumps(message))
        except OSError:  # It has ended since.
            self._died()
        is_good, answer = pickle.loads(self._receive())
        if is_good:
            return answer
        raise answer.exception()

    def _receive(self) -> bytes:
        from multiprocessing.connection import wait

        # A forked child of this process may hold the other end open: so the end of the
        # process is watched, too.
        ready = wait([self._connection, self._process.sentinel])
        try:
            if self._connection in ready:
                return self._connection.recv_bytes()
        except (EOFError, OSError):
            pass
        self._died()

    def _died(self) -> NoReturn:
        self.is_usable = False
        self._process.join(_SECONDS_TO_END)
        raise _DiedError(
            self._process.pid, self._process.exitcode, has_begun=self._has_begun, is_killed=self._is_killed
        )


_CLOSED = "the loader is closed, and its worker processes with it"
_END = b""
"""The message after which a worker ends."""
_starting = threading.Lock()
"""Held while a process starts."""


class Region:
    """Memory that two processes map, and which grows with what is put there."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._map: mmap.mmap | None = None

    @classmethod
    def make(cls) -> Region:
        if hasattr(os, "memfd_create"):
            return cls(os.memfd_create("leat-function", os.MFD_CLOEXEC))
        # A Python that was built for an old libc, such as conda's.
        with tempfile.TemporaryFile(dir="/dev/shm") as file:
            return cls(os.dup(file.fileno()))

    @classmethod
    def _of_parent(cls, fd: Any) -> Region:
        return cls(fd.detach())

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing import reduction

        return (Region._of_parent, (reduction.DupFd(self._fd),))

    def put(self, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Writes bytes and arrays. Returns what `take` needs to know; texts are in that."""
        parts: list[tuple[Any, ...]] = []
        end = 0
        for value in values:
            if isinstance(value, str):
                parts.append((value,))
                continue
            array = _array_of(value)
            parts.append((isinstance(value, bytes), array.dtype, array.shape, end))
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        self._grow(end)
        for value, part in zip(values, parts):
            if len(part) > 1:
                self._view(part)[...] = _array_of(value)
        return parts

    def take(self, parts: list[tuple[Any, ...]]) -> list[Any]:
        """Copies of what the other side put."""
        return [part[0] if len(part) == 1 else self._copy(part) for part in parts]

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        if self._fd >= 0:
            os.close(self._fd)
        self._map, self._fd = None, -1

    def _copy(self, part: tuple[Any, ...]) -> Any:
        view = self._view(part)
        return view.tobytes() if part[0] else view.copy()

    def _view(self, part: tuple[Any, ...]) -> np.ndarray:
        _, dtype, shape, begin = part
        count = int(np.prod(shape))
        if count * dtype.itemsize == 0:
            return np.empty(shape, dtype)
        self._map_until(begin + count * dtype.itemsize)
        return np.frombuffer(self._map, dtype, count, begin).reshape(shape)  # type: ignore[arg-type]

    def _grow(self, size: int) -> None:
        if size > os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, -(-size // _GROWTH) * _GROWTH)

    def _map_until(self, end: int) -> None:
        if self._map is None or len(self._map) < end:
            if self._map is not None:
                self._map.close()
            self._map = mmap.mmap(self._fd, os.fstat(self._fd).st_size)


def _array_of(value: Any) -> np.ndarray:
    if not isinstance(value, bytes):
        return value
    return np.frombuffer(value, np.uint8) if value else np.empty(0, np.uint8)


class _Failure:
    """An exception on its way from a worker."""

    def __init__(self, error: BaseException) -> None:
        self._name = type(error).__qualname__
        self._says = str(error)
        # Without the frame of this module that called the function.
        below = error.__traceback__.tb_next if error.__traceback__ is not None else None
        self._traceback = "".join(traceback.format_exception(type(error), error, below))
        self._pickled: bytes | None = None
        try:
            pickled = pickle.dumps(error)
            if type(pickle.loads(pickled)) is type(error):
                self._pickled = pickled
        except Exception:  # Some kinds take other arguments than they keep.
            pass

    def exception(self) -> BaseException:
        """The exception, caused by its traceback; a leat.Error of the same text in the place of one
        that cannot be pickled."""
        try:
            error = pickle.loads(self._pickled or b"")
        except Exception:
            error = Error(f"{self._name}: {self._says}")
        error.__cause__ = _TracebackError(self._traceback)
        return error


class _TracebackError(Exception):
    """Shows the traceback of another process below an exception."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _serve(connection: Any, region: Region) -> None:
    """A worker, until its connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us.
    _end_with_parent()
    calls: dict[int, Callable[..., Any]] = {}
    try:
        connection.send_bytes(b"")
        while True:
            message = connection.recv_bytes()
            if message == _END:
                return
            connection.send_bytes(_answer(pickle.loads(message), calls, region))
    except (EOFError, OSError):
        return


def _answer(message: tuple[Any, ...], calls: dict[int, Callable[..., Any]], region: Region) -> bytes:
    try:
        if message[0] == "load":
            _, place, pickled = message
            calls[place] = _functions.call_per_sample(*_loaded(pickled))
            return pickle.dumps((True, None))
        _, place, numbers, is_joint, parts = message
        values = region.take(parts)
        made = calls[place](tuple(values) if is_joint else values[0], *numbers)
        made = [one if isinstance(one, str) else _functions.as_array(one) for one in (made if is_joint else (made,))]
        return pickle.dumps((True, region.put(made)))
    except BaseException as error:  # noqa: BLE001: raised where the function was called
        return pickle.dumps((False, _Failure(error)))


def _loaded(pickled: bytes) -> tuple[Any, ...]:
    function, place, draws_globally, fields = pickle.loads(pickled)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)  # The other cores have workers of their own.
    return function, place, draws_globally, fields


def _end_with_parent() -> None:
    """Ends this process as soon as its parent has ended, also during a call."""
    from multiprocessing import parent_process
    from multiprocessing.connection import wait

    parent = parent_process()

    def watch() -> None:
        if parent is None or parent.pid is None:
            return
        ends = [parent.sentinel]
        try:
            # The sentinel is a pipe, which a forked child of the parent keeps open.
            ends.append(os.pidfd_open(parent.pid))  # type: ignore[attr-defined,unused-ignore]
        except ProcessLookupError:
            os._exit(1)
        except (AttributeError, OSError):  # Not of this Python or kernel.
            pass
        wait(ends)
        os._exit(1)

    threading.Thread(target=watch, name="leat-parent", daemon=True).start()


def _start_method() -> str:
    """As the program has chosen, if that is no plain fork: a fork of a process with threads hangs."""
    import multiprocessing

    chosen = multiprocessing.get_start_method(allow_none=True)
    has_server = "forkserver" in multiprocessing.get_all_start_methods()
    return "spawn" if chosen == "spawn" or not has_server else "forkserver"


def obstacle() -> str:
    """Why this process can have no workers, or ""."""
    import multiprocessing

    if multiprocessing.current_process().daemon:
        return "this process is a worker itself, and may have none"
    script = _script()
    if script is not None and not _guards(script):
        return (
            f"processes import {script}, which would run again from its first line to its last: put what "
            'trains under `if __name__ == "__main__":`'
        )
    return ""


def _script() -> pathlib.Path | None:
    """The file that new processes import as the main module; None if they import none."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name.endswith("__main__"):  # As multiprocessing has it.
        return None
    path = getattr(main, "__file__", None)
    return pathlib.Path(path) if path is not None and pathlib.Path(path).is_file() else None


def _guards(script: pathlib.Path) -> bool:
    """Whether an `if` at its top level asks for the module's name."""
    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(name, ast.Name) and name.id == "__name__"
        for line in tree.body if isinstance(line, ast.If) for name in ast.walk(line.test)
    )  # fmt: skip
