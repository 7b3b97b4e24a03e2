"""Functions that worker processes find by name."""

from __future__ import annotations

import os
import random
import signal
import time

import numpy as np


def busy(seconds: float) -> None:
    """Holds the interpreter's lock for so much CPU time of this thread."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def heavy(data: bytes) -> int:
    """Tells where it ran, after 3 ms of Python."""
    busy(3e-3)
    return os.getpid()


def place_of(data: bytes) -> int:
    return os.getpid()


def sleeps(data: bytes) -> int:
    time.sleep(3e-3)
    return os.getpid()


def waits(gate: bytes) -> int:
    """Until there is a file of that name."""
    while not os.path.exists(gate):
        time.sleep(1e-3)
    return os.getpid()


def held(_held: object, value: np.ndarray, token: str) -> np.ndarray:
    return value


def draws(data: bytes, rng: np.random.Generator) -> float:
    return rng.random()


def draws_globally(data: bytes) -> float:
    return random.random() + np.random.random()


def darker(image: np.ndarray) -> np.ndarray:
    assert image.flags.writeable and image.flags.owndata
    image //= 2
    return image


def swapped(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return second + 1, first


def text_of(data: bytes) -> str:
    return f"{len(data)} bytes ✓"


def big(data: bytes) -> np.ndarray:
    return np.arange(200_000, dtype=np.int64) + len(data)


def nothing(data: bytes) -> np.ndarray:
    return np.zeros((0, 3), np.float32)


class OwnError(Exception):
    """Cannot be made again from what it keeps."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"{why} ({code})")


def deep_inside(data: bytes) -> int:
    raise KeyError("no such word")


def fails(data: bytes) -> int:
    return deep_inside(data)


def fails_oddly(data: bytes) -> int:
    raise OwnError(7, why="nothing fits")


def dies(data: bytes) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def hangs(data: bytes) -> int:
    """In a worker, for ever, with the interpreter's lock held now and then."""
    print(os.getpid(), flush=True)
    time.sleep(1000)
    return 0


class Reserved:
    """Does not show what it holds."""

    def __call__(self, data: bytes) -> int:
        return len(data)

    def __repr__(self) -> str:
        raise RuntimeError("asked for its repr")


class Unwelcome:
    """Can be pickled, and not made again."""

    def __call__(self, data: bytes) -> int:
        return 0

    def __setstate__(self, state: object) -> None:
        raise RuntimeError("not in another process")

    def __getstate__(self) -> dict[str, int]:
        return {"a": 1}
