"""Notices functions that draw from the process's generators and have not said so.

Leat seeds those generators for a function with ``global_rng=True``. Any other function draws other
numbers in each run, as threads take turns by chance, and two of them move the image and the mask of
a sample apart.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from leat import _say
from leat._functions import global_generators
from leat.ops import Filter, Python

_CALLS = 3
"""This many calls in turn have to draw, since the program may draw beside one of them."""
_PATIENCE_SECONDS = 0.1
"""A function may wait for another loader, and so for that one's functions: they are not looked at then."""


def noticed(op: Python, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose first calls are looked at: warns once if they draw.

    Threads: any. Its first calls run one at a time.

    Args:
        op: whose function it is.
    """
    looks = _Looks(op)

    def call(*values: Any) -> Any:
        if looks.are_over or not global_generators.acquire(timeout=_PATIENCE_SECONDS):
            return function(*values)
        try:
            before = _fingerprint()
            made = function(*values)
            looks.add(before != _fingerprint())
            return made
        finally:
            global_generators.release()

    return call


class _Looks:
    """The looks at one function so far."""

    def __init__(self, op: Python) -> None:
        self.are_over = False
        self._op = op
        self._seen = 0

    def add(self, draws: bool) -> None:
        """A call has ended that drew, or not."""
        self._seen += draws
        self.are_over = not draws or self._seen == _CALLS
        if self._seen == _CALLS:
            name = " ".join(repr(self._op).split())  # Objects of other libraries print several lines.
            _say.once(logging.WARNING, f"{name} draws from the generators of random, NumPy or torch{self._so()}")

    def _so(self) -> str:
        if isinstance(self._op, Filter):
            return ", so it skips other samples in each epoch: choose at random before, with leat.Dataset.select"
        return (
            " and has not said so: in each run it draws other numbers, and it draws apart for each field that has "
            "such a function. Say global_rng=True, or give the function a parameter rng; fields= gives it several fields"
        )


def _fingerprint() -> tuple[Any, ...]:
    """Another one if anybody has drawn."""
    _, keys, place, *gauss = cast("tuple[Any, ...]", np.random.get_state(legacy=True))
    torch: Any = sys.modules.get("torch")
    of_torch = torch.get_rng_state().numpy().tobytes() if hasattr(torch, "get_rng_state") else b""
    return of_torch, random.getstate(), keys.tobytes(), place, gauss
