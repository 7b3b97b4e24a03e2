"""Notices items that draw from the random generators that all threads share.

If items run one after another, such draws come in a fixed order and a seed repeats them;
with many threads they do not.
"""

from __future__ import annotations

import random
import warnings
from typing import Any, cast

import numpy as np
import torch

from leat.torch._turns import Turns

_DRAWS = "leat.torch.DataLoader: its items draw from random's, numpy's or torch's global generator, "
_REMEDY = (
    "To fetch at once and repeat the numbers, draw from leat.torch.get_worker_info().rng with "
    'num_workers >= 1, or ask for worker processes: multiprocessing_context="forkserver". '
    "threads= says that you accept it"
)
_IN_TURN = (
    "so they are fetched one after another, in the calling thread, as torch does with "
    "num_workers=0: a seed repeats the numbers. "
)
_AT_ONCE = "and many threads fetch them: a seed does not repeat the numbers. "


class Habits:
    """The observed behaviour of a loader's items; outlives its iterators.

    Args:
        are_accepted: whether the user said that draws in any order are right.
    """

    def __init__(self, are_accepted: bool) -> None:
        self.is_quick = True  # Until two items in a row were not.
        self.is_in_turn = False
        self.turns = Turns()
        self._are_accepted = are_accepted
        self._has_warned = False

    def saw_draws(self, is_ahead: bool) -> None:
        """The global generators moved while items were fetched."""
        if self._are_accepted:
            return
        self.is_in_turn = not is_ahead
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(_DRAWS + (_AT_ONCE if is_ahead else _IN_TURN) + _REMEDY, stacklevel=5)


def fingerprint() -> tuple[Any, ...]:
    """Changes when anybody draws from a global generator."""
    name, keys, *rest = cast("tuple[Any, ...]", np.random.get_state(legacy=True))
    return (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        (name, keys.tobytes(), *rest),
    )
