"""Chooses samples of a dataset, and reads them as they are stored and as ops make them."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from leat import ops as _ops
from leat._batches._ragged import Ragged
from leat._dataset import Dataset
from leat._orders._mix import Mix
from leat._show._parts import MOST_BYTES, Roles
from leat.errors import Error, InvalidArgument

if TYPE_CHECKING:
    from leat._loader import Loader

READER = "leat-show"
"""The name of threads that read."""
_READERS = 16
_AHEAD = 2 * _READERS
"""Samples that are read, or under way, before somebody takes them."""
_PATIENCE_SECONDS = 1.0
"""For reads that nobody wants any more."""
_Read = TypeVar("_Read")
_OPENING = (
    _ops.DecodeImage, _ops.DecodeMask, _ops.ParseBoxes, _ops.ParseKeypoints, _ops.ParseInt, _ops.ParseFloat,
    _ops.ParseText, _ops.ParseJson, _ops.LoadNpy, _ops.LoadMdsArray, _ops.ParseFeature,
)  # fmt: skip
"""Ops that only read what is stored."""


class Group(NamedTuple):
    """Samples under one heading."""

    name: str
    total: int
    """All samples of the dataset that belong to it."""
    samples: Sequence[int]
    """Those that are shown."""


class Version(NamedTuple):
    """One way to see a sample."""

    name: str
    ops: Sequence[_ops.Op]
    epoch: int


def plain(dataset: Dataset) -> tuple[Dataset, list[str]]:
    """A dataset whose samples have numbers, and the names of its sources, if it is a mix."""
    if isinstance(dataset, Mix):
        return Dataset._of(dataset._native, dataset._dtypes), dataset.sources
    return dataset, []


def groups_of(
    dataset: Dataset, by: str | None, sources: Sequence[str], count: int, seed: int, samples: Sequence[int] | None
) -> tuple[list[Group], str | None, int]:
    """The samples to show: `count` of them, drawn by `seed`, as many of each group.

    Returns:
        Groups, the field that tells them (None: there is one group), and how many groups were left out.

    Raises:
        leat.InvalidArgument: no such column, or no such sample.
    """
    if samples is not None:
        if wrong := [number for number in samples if not 0 <= number < len(dataset)]:
            raise InvalidArgument(f"samples= has {wrong[0]}; there are samples 0 to {len(dataset) - 1}")
        return [Group("", len(dataset), list(samples))], None, 0
    by = _field_of(dataset, by, sources)
    rng = np.random.default_rng([seed, 0x1EA7])
    if by is None:
        chosen = np.sort(rng.choice(len(dataset), min(count, len(dataset)), replace=False))
        return [Group("", len(dataset), chosen.tolist())], None, 0
    column = np.asarray(dataset.column(by))
    values, members = np.unique(column, return_inverse=True)
    several = np.arange(len(values))
    if len(values) > count:
        several = np.sort(rng.choice(len(values), count, replace=False))
    each = max(1, count // len(several))
    names = sources if by == "source" and sources else dataset.classes if by == "label" else []
    groups = []
    for index in several.tolist():
        there = np.flatnonzero(members == index)
        chosen = np.sort(rng.choice(there, min(each, len(there)), replace=False))
        value = values[index]
        is_named = len(names) > 0 and 0 <= value < len(names)
        groups.append(Group(str(names[int(value)] if is_named else value), len(there), chosen.tolist()))
    return groups, by, len(values) - len(several)


def _field_of(dataset: Dataset, by: str | None, sources: Sequence[str]) -> str | None:
    if by is None or by == "auto":
        usual = "source" if sources else "label" if dataset.classes else None
        return usual if by == "auto" and usual in dataset.fields else None
    kind = dataset.fields.get(by)
    if kind is None or kind == "bytes":
        columns = [name for name, kind in dataset.fields.items() if kind != "bytes"]
        has = f"it has {', '.join(columns)}" if columns else "it has none"
        raise InvalidArgument(f"by={by!r}: the dataset has no such column; {has}")
    return by


def stored(dataset: Dataset, samples: Sequence[int]) -> Iterator[dict[str, Any] | Error]:
    """Each sample as it is stored, or the error of reading it; long values are told by their length."""

    def read(number: int) -> dict[str, Any] | Error:
        try:
            return _sample(dataset, number)
        except Error as error:
            return error

    yield from _read_ahead(read, samples)


def _read_ahead(read: Callable[[int], _Read], samples: Sequence[int]) -> Iterator[_Read]:
    """As map() has it, some at a time. Ctrl-C does not wait for a read that waits for its store."""
    waiting: queue.SimpleQueue[tuple[Future[_Read], int] | None] = queue.SimpleQueue()
    ahead: deque[Future[_Read]] = deque()
    is_over = threading.Event()

    def work() -> None:
        while (pair := waiting.get()) is not None and not is_over.is_set():
            _settle(read, *pair)
            del pair  # It has the sample.

    threads = [
        threading.Thread(target=work, name=READER, daemon=True) for _ in range(min(_READERS, len(samples)))
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    try:
        for number in samples:
            if len(ahead) == _AHEAD:
                yield ahead.popleft().result()
            ahead.append(Future())
            waiting.put((ahead[-1], number))
        while ahead:
            yield ahead.popleft().result()
    finally:
        is_over.set()
        for _ in threads:
            waiting.put(None)
        latest = time.monotonic() + _PATIENCE_SECONDS
        for thread in threads:
            thread.join(max(0.0, latest - time.monotonic()))


def _settle(read: Callable[[int], _Read], result: Future[_Read], number: int) -> None:
    try:
        result.set_result(read(number))
    except BaseException as error:
        result.set_exception(error)


def _sample(dataset: Dataset, number: int) -> dict[str, Any]:
    places = {name: dataset._native.range(name, number) for name, kind in dataset.fields.items() if kind == "bytes"}
    long = {
        name: f"{place[2]:,} bytes: too long to be shown"
        for name, place in places.items()
        if place is not None and place[2] > MOST_BYTES
    }
    return dict(dataset._sample(number, long))


def opening(chain: Sequence[_ops.Op]) -> list[_ops.Op]:
    """The ops of a chain that read a sample without changing it."""
    return [op for op in chain if isinstance(op, _OPENING)]


def made(dataset: Dataset, samples: Sequence[int], version: Version, seed: int) -> list[dict[str, Any] | Error]:
    """Each sample as a loader delivers it with these ops in this epoch, or why it cannot be."""
    if any(op.per == "batch" for op in version.ops):
        return _in_one_batch(dataset, samples, version, seed)
    found: list[dict[str, Any] | Error] = []
    waiting = list(samples)
    while waiting:  # A loader that met a bad sample has ended.
        with _loader(dataset, version, seed, shuffle=False, batch_size=1, max_in_flight=_READERS) as loader:
            for number in list(waiting):
                waiting.pop(0)
                try:
                    # By its place in the order, since random ops draw by the sample's number.
                    loader.load_state_dict({**loader.state_dict(), "epoch": version.epoch, "position": number})
                    row = next(rows_of(next(iter(loader))))
                except Error as error:
                    found.append(error)
                    break
                except StopIteration:
                    row = {"index": -1}
                found.append(row if int(row["index"]) == number else _left_out())
    return found


def _in_one_batch(
    dataset: Dataset, samples: Sequence[int], version: Version, seed: int
) -> list[dict[str, Any] | Error]:
    """Ops of batches mix the samples of the page with each other."""
    try:
        with _loader(dataset, version, seed, sampler=list(samples), batch_size=len(samples)) as loader:
            loader.set_epoch(version.epoch)
            by_number = {int(row["index"]): row for batch in loader for row in rows_of(batch)}
    except Error as error:
        return [error] * len(samples)
    return [by_number.get(number) or _left_out() for number in samples]


def _left_out() -> Error:
    return InvalidArgument("a Filter of these ops leaves this sample out")


def _loader(dataset: Dataset, version: Version, seed: int, **options: Any) -> Loader:
    from leat._loader import Loader

    return Loader(
        dataset, drop_last=False, seed=seed, ids=True, batch="dict", ops=list(version.ops), output="numpy",
        rank=0, world_size=1, **options,
    )  # fmt: skip


def rows_of(batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The samples of a batch that is a dict."""
    columns = {name: _on_cpu(value) for name, value in batch.items()}
    count = min((len(column) for column in columns.values()), default=0)
    for row in range(count):
        yield {name: _one(column, row) for name, column in columns.items()}


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Ragged):
        return Ragged(*(None if part is None else _numpy(part) for part in (value.values, value.offsets, value.shapes)))
    return value if isinstance(value, list) else _numpy(value)


def _numpy(value: Any) -> np.ndarray:
    """An array of NumPy's, also of a type that only others have."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _one(column: Any, row: int) -> Any:
    value = column[row]
    is_raw = isinstance(column, Ragged) and column.shapes is None and column.values.dtype == np.uint8
    return value.tobytes() if is_raw and value.ndim == 1 else value


def roles_of(chain: Sequence[_ops.Op], names: Mapping[str, str] | None = None) -> Roles:
    """The fields that ops make of a sample.

    Args:
        names: from a field to its name in a batch, where it has another.
    """
    roles, given = Roles(), names or {}
    for op in chain:
        params = op._params if hasattr(op, "_params") else {}
        name = getattr(op, "_to", None) or getattr(op, "_field", None)
        if isinstance(op, _ops.DecodeImage):
            roles.images[given.get(op._to or "image", op._to or "image")] = params.get("layout", "CHW")
        elif isinstance(op, _ops.DecodeMask):
            roles.masks.append(given.get(op._to or "mask", op._to or "mask"))
        elif isinstance(op, _ops.ParseBoxes):
            labels = params.get("labels_to", "labels") if params.get("labels") is not None else ""
            roles.boxes[given.get(op._to or "boxes", op._to or "boxes")] = given.get(labels, labels)
        elif isinstance(op, _ops.ParseKeypoints):
            roles.points.append(given.get(op._to or "keypoints", op._to or "keypoints"))
        elif isinstance(op, _ops.Normalize) and (name is None or given.get(name, name) in roles.images):
            roles.scale = _scale_of(params)
    return roles


def _scale_of(params: Mapping[str, Any]) -> tuple[Any, Any]:
    mean, std = params["mean"], params.get("std")
    is_usual = std is None or std == "imagenet"
    return _ops.IMAGENET_MEAN if mean == "imagenet" else mean, _ops.IMAGENET_STD if is_usual else std
