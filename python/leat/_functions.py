"""Calls functions of the user's from the engine's threads."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from leat._batches import _dtypes
from leat.errors import Error, InvalidArgument

global_generators = threading.RLock()
"""Held while a function draws from the process's generators: they have one state. Such a function may call a
`leat.ops.Chain` with another."""


def takes_rng(function: Callable[..., Any]) -> bool:
    """Whether it has a parameter called ``rng``."""
    try:
        return "rng" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # Some callables of C do not say.
        return False


def rng_of(*numbers: int) -> np.random.Generator:
    """A generator that is a function of these numbers alone."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(numbers)))


@contextlib.contextmanager
def seeded_global_generators(*numbers: int) -> Iterator[None]:
    """Within it `random`, NumPy's generator, and torch's if it is imported, are seeded; then they
    are as before, so that the program draws what it would have drawn.

    The program's draws of the same moment, in another thread, come from that seed.
    """
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
    torchs = getattr(sys.modules.get("torch"), "default_generator", None)
    with global_generators:
        of_random, of_numpy = random.getstate(), np.random.get_state(legacy=False)
        of_torch = None if torchs is None else torchs.get_state()
        try:
            random.seed(seed)
            np.random.seed(seed % 2**32)
            if torchs is not None:
                torchs.manual_seed(seed)
            yield
        finally:
            random.setstate(of_random)
            np.random.set_state(of_numpy)
            if torchs is not None:
                torchs.set_state(of_torch)


def call_per_sample(
    function: Callable[..., Any],
    place: int,
    draws_globally: bool,
    fields: tuple[str, ...] = (),
) -> Callable[[Any, int, int, int], Any]:
    """The function as the engine calls it: with the value, seed, epoch and sample.

    ``place`` is the op's place in its chain, so that two ops draw differently. For a
    function of several ``fields`` the value is a tuple of their values.
    """
    if fields:
        function = _of_fields(function, fields)
    if takes_rng(function):
        return lambda value, *numbers: function(value, rng=rng_of(*numbers, place))
    if not draws_globally:
        return lambda value, *numbers: function(value)

    def call(value: Any, *numbers: int) -> Any:
        with seeded_global_generators(*numbers, place):
            return function(value)

    return call


def _of_fields(function: Callable[..., Any], fields: tuple[str, ...]) -> Callable[..., Any]:
    """As a function of one tuple, which answers another that is as long."""

    def checked(made: Any) -> tuple[Any, ...]:
        if not isinstance(made, (tuple, list)) or len(made) != len(fields):
            count = f"{len(made)} values" if isinstance(made, (tuple, list)) else type(made).__name__
            raise InvalidArgument(
                f"Python(fields={fields!r}): the function gave {count}; it gives a "
                f"tuple of {len(fields)}, one for each field"
            )
        return tuple(made)

    if takes_rng(function):
        return lambda values, rng: checked(function(*values, rng=rng))
    return lambda values: checked(function(*values))


def call_per_batch(
    function: Callable[..., Any], place: int, field: str | None, draws_globally: bool
) -> Callable[[dict[str, Any], str, tuple[int, ...]], Any]:
    """The function as a loader calls it: with the fields, the kind of the batch, and the
    numbers of its position."""
    wants_rng = takes_rng(function)

    def run(value: Any, numbers: tuple[int, ...]) -> Any:
        if wants_rng:
            return function(value, rng=rng_of(*numbers, place))
        if not draws_globally:
            return function(value)
        with seeded_global_generators(*numbers, place):
            return function(value)

    def call(batch: Any, kind: str, numbers: tuple[int, ...]) -> Any:
        if field is None:
            as_delivered = kind == "tuple" and isinstance(batch, dict)
            return run(tuple(batch.values()) if as_delivered else batch, numbers)
        if not isinstance(batch, dict) or field not in batch:
            raise InvalidArgument(
                f"Python(per='batch', field={field!r}): the batch has no such field"
            )
        return {**batch, field: run(batch[field], numbers)}

    return call


def as_array(made: Any) -> np.ndarray:
    """A function's result, in C order and little-endian.

    Raises:
        leat.InvalidArgument: the result is not an array of numbers.
    """
    if hasattr(made, "detach"):  # A torch tensor.
        made = _dtypes.of_torch(made.detach().cpu())
    if isinstance(made, (bytes, bytearray, memoryview)):
        made = np.frombuffer(made, np.uint8)
    try:
        array = np.asarray(made, order="C")
    except ValueError as error:  # Lists of unequal lengths.
        raise InvalidArgument(f"a function gave what is no array: {error}") from None
    if array.dtype == _dtypes.BITS or array.dtype.name == "bfloat16":
        return array.view(_dtypes.BITS)
    if array.dtype.kind not in "biufc":
        raise InvalidArgument(
            f"a function gave {type(made).__name__}, which is no array of numbers; it "
            "gives an array, a tensor, an image, a number or a str"
        )
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def add_note(raised: BaseException, message: str) -> None:
    """Adds the place of the error below the traceback of the user's own code."""
    if hasattr(raised, "add_note"):  # Python 3.11 and later.
        raised.add_note(f"leat: {message}")
    else:
        place = Error(message)
        place.__cause__ = raised.__cause__
        raised.__cause__ = place


def to_raise_and_to_keep(kept: BaseException) -> tuple[BaseException, BaseException]:
    """An exception that is raised now, with the traceback of the user's own code, and one for the next time."""
    made = _copied(kept)
    if made is None:  # It is raised itself, once.
        return kept, copy_of(kept)
    return made.with_traceback(kept.__traceback__), kept


def copy_of(raised: BaseException) -> BaseException:
    """A copy that knows nothing of the frames that it was raised through; a `leat.Error` of the same text in the place
    of one that cannot be copied."""
    return _copied(raised) or Error(f"{type(raised).__qualname__}: {raised}")


def _copied(raised: BaseException) -> BaseException | None:
    for make in (copy.copy, _without_init):
        try:
            made = make(raised)
            is_same = type(made) is type(raised) and made.args == raised.args and str(made) == str(raised)
        except Exception:  # Some kinds take other arguments than they keep.
            continue
        if not is_same or made is raised:
            continue
        if notes := getattr(raised, "__notes__", None):
            made.__notes__ = list(notes)  # type: ignore[attr-defined]
        made.__cause__, made.__context__ = raised.__cause__, raised.__context__
        made.__suppress_context__ = raised.__suppress_context__
        return made
    return None


def _without_init(raised: BaseException) -> BaseException:
    made = type(raised).__new__(type(raised), *raised.args)
    made.__dict__.update(raised.__dict__)
    return made


def split_samples(batch: Any) -> list[Any]:
    """The samples of a batch, each as the batch is: a dict or a tuple of values."""
    if isinstance(batch, dict):
        rows = zip(*(list(_rows(values)) for values in batch.values()))
        return [dict(zip(batch, row)) for row in rows]
    return list(zip(*(list(_rows(values)) for values in batch)))


def _rows(values: Any) -> Any:
    return (values[row] for row in range(len(values)))
