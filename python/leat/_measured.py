"""A whole number for each sample that a function of the user's measures, once for each catalogue."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import operator
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leat import _native
from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset

_log = logging.getLogger("leat")
_VERSION = 1
_BATCH = 1024


def measure_all(dataset: Dataset, field: str, measure: Callable[[Any], Any], name: str) -> np.ndarray:
    """As `leat.Dataset.measured`."""
    if not callable(measure):
        raise InvalidArgument(f"measured({field!r}): {measure!r} cannot be called; it is a function of a value")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidArgument(f"measured(kept_as={name!r}): give a text that can be printed")
    path = _path_of(dataset, field, name)
    if path is None:
        _log.warning("measured(%r): no folder of Leat's cache can be written, so that nothing is kept", field)
        return _read_all(dataset, field, measure)
    with _turn(path):  # Other processes of this node wait for the one that reads.
        kept = _kept(path, len(dataset))
        if kept is None:
            _log.info("measures %r of %d samples, which is kept as %r", field, len(dataset), name)
            kept = _read_all(dataset, field, measure)
            _keep(path, kept)
    return kept


class _Whole:
    """Calls the function, and checks what it gives. Goes to worker processes if the function does."""

    def __init__(self, function: Callable[[Any], Any], field: str) -> None:
        self._function, self._field = function, field

    def __call__(self, value: Any) -> int:
        found = self._function(value)
        try:
            number = operator.index(found)
        except TypeError:
            number = -1
        if not 0 <= number < 2**63:
            raise InvalidArgument(
                f"measured({self._field!r}): the function gave {found!r}; it gives a whole number of at least 0"
            )
        return number


def _read_all(dataset: Dataset, field: str, measure: Callable[[Any], Any]) -> np.ndarray:
    from leat._loader import Loader
    from leat.ops import Python

    parts = [np.empty(0, np.int64)]
    # This process reads all of it, as any rank.
    with Loader(
        dataset, batch_size=min(len(dataset), _BATCH), shuffle=False, drop_last=False, fields=[field], batch="tuple",
        epochs=1, rank=0, world_size=1, output="numpy", ops=[Python(_Whole(measure, field), field=field)],
    ) as loader:  # fmt: skip
        parts.extend(np.array(numbers, np.int64) for (numbers,) in loader)
    return np.concatenate(parts)


def _path_of(dataset: Dataset, field: str, name: str) -> str | None:
    """The file of these numbers: of this very data, as it was listed. None: there is no folder for it."""
    cache = _native.user_cache_folder()
    if cache is None:
        return None
    folder = os.path.join(cache, "measured")
    said = json.dumps([_VERSION, dataset.digest, dataset._native.versions, field, name])
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    return os.path.join(folder, hashlib.blake2b(said.encode(), digest_size=16).hexdigest() + ".npy")


@contextlib.contextmanager
def _turn(path: str) -> Iterator[None]:
    with open(path + ".lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Ends with the process, too.
        yield


def _kept(path: str, samples: int) -> np.ndarray | None:
    """None also where the file is damaged."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_whole = found.dtype == np.int64 and found.shape == (samples,) and (found >= 0).all()
    return found if is_whole else None


def _keep(path: str, numbers: np.ndarray) -> None:
    """Seen whole or not at all. A disk that is full costs the next process a measurement."""
    try:
        with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
            written = os.path.join(folder, "numbers.npy")
            np.save(written, numbers)
            os.replace(written, path)
    except OSError as error:
        _log.warning("what was measured is not kept: %s", error)
