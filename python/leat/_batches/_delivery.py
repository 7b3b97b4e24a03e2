"""Makes the batch that a program gets of the fields that the engine hands over."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Union

import numpy as np

from leat import _functions, ops as _ops
from leat._arguments import flag
from leat._batches import _batch, _dtypes, _outputs
from leat._batches._ahead import Ahead
from leat.errors import InvalidArgument
from leat.ops._mix import BatchOp

Fields = Union[Sequence[str], Mapping[str, str], None]
Collate = Union[Callable[[list[Any]], Any], None]
Form = Literal["auto", "dict", "tuple"]
Output = Literal["auto", "numpy", "torch", "jax"]

_UNASKED = {"index", "key", "valid"}
"""Come with ids=, whichever fields are asked for."""


class Delivery:
    """Makes batches of the engine's fields, as a loader's arguments say.

    Args:
        fields, batch, ops, collate, output, pin_memory, device: as for `leat.Loader`.

    Raises:
        leat.InvalidArgument: one that cannot be.
    """

    def __init__(
        self,
        *,
        fields: Fields,
        batch: str,
        ops: Sequence[_ops.Op],
        collate: Collate,
        output: str,
        pin_memory: bool,
        device: Any,
    ) -> None:
        if collate is not None and not callable(collate):
            raise InvalidArgument(f"collate={collate!r}; it is a function")
        self.ops = _ops.listed(ops)
        read, names = _batch.fields_of(fields)
        self._added = [name for op in self.ops for name in getattr(op, "adds", ())]
        self.fields = [field for field in read if field not in self._added]
        """The fields that the engine reads, in their order; empty for all, such as where only those are asked for
        that ops add, of fields that the ops know."""
        self._asked = read
        self._asks_for_added = len(self.fields) < len(read)
        self._kind = _batch.choose(batch, isinstance(fields, Mapping), read)
        self._names = _batch.Names(names)
        self._collate = collate
        self._functions = _batch_functions(self.ops)
        self._before_choice = _before_choice(self.ops)
        for op in self.ops:
            if isinstance(op, BatchOp):
                op.check_beside(self.ops)
        _check_drawn_apart(self.ops)
        pin_memory = flag("pin_memory", pin_memory)
        output = _outputs.name_of(output, pins=pin_memory, device=device)
        _dtypes.check(self.ops, output)
        self._to_output = _outputs.choose(output, pins=pin_memory, device=device)
        self._ahead: Ahead | None = None
        """Copies the next batch, if batches are copied at all."""
        if isinstance(self._to_output, _outputs.Moved):
            self._ahead = Ahead(self._to_output)
        if self._kind == "dict":
            _batch.register_as_tree(output)

    @property
    def collates(self) -> bool:
        """Whether a function takes the samples of a batch apart."""
        return self._collate is not None

    @property
    def draws(self) -> bool:
        """Whether a batch depends on where it stands: functions of batches may draw."""
        return bool(self._functions)

    def options(self) -> dict[str, Any]:
        """The fields and the ops, for the engine."""
        return {
            "ops": _ops.specs_to_json(self.ops),
            "fields": self.fields,
            "collates": self.collates,
            "recorded_filters": [op.name for op in self.ops if isinstance(op, _ops.Filter) and op.name],
        }

    def fields_wanted(self, columns: Iterable[str]) -> frozenset[str] | None:
        """The fields that are asked for or named in ops, and these columns; None: all."""
        if not self.fields:
            return None
        wanted = {*self.fields, *columns}
        for op in self.ops:
            for value in getattr(op, "_params", {}).values():
                several = value if isinstance(value, list) else [value]
                wanted.update(each for each in several if isinstance(each, str))
            wanted.add(getattr(op, "_field", None) or "")
        return frozenset(wanted)

    def check_fields(self, fields: Iterable[str]) -> None:
        """Raises `InvalidArgument` if fields of the dataset and names were confused."""
        self._names.check_direction([*fields, *self._added])

    def expect(self, delivered: Sequence[str]) -> None:
        """These fields will come. Raises `InvalidArgument` if they cannot be named as asked."""
        makes_anew = any(
            op.per == "batch" and op._field is None for op in self.ops if isinstance(op, _ops.Python)
        )
        if delivered and not makes_anew:  # Else nobody knows yet what there will be.
            self._names.expect([*delivered, *self._added])

    def begin(
        self, dtypes: Mapping[str, Any], look: Callable[[float], list[tuple[str, Any]] | None] | None
    ) -> None:
        """An epoch begins.

        Args:
            dtypes: of fields whose bytes are rows of numbers: see `Dataset._dtypes`.
            look: the next batch, as `Ahead.begin` takes it; None if it does not come from this process's engine.
        """
        if self._ahead is not None and look is not None:
            self._ahead.begin(look, functools.partial(_numbers, dtypes=dtypes))

    def end(self) -> None:
        """The epoch has no next batch."""
        if self._ahead is not None:
            self._ahead.end()

    def close(self) -> None:
        """Ends its thread; twice does no harm."""
        if self._ahead is not None:
            self._ahead.close()

    def batch_of(
        self, fields: list[tuple[str, Any]], dtypes: Mapping[str, Any], place: tuple[int, ...], *, is_next: bool = True
    ) -> Any:
        """The batch.

        Args:
            fields: of the engine.
            dtypes: of fields whose bytes are rows of numbers: see `Dataset._dtypes`.
            place: seed, epoch, position and rank, if `draws`.
            is_next: False for one that was only looked at.
        """
        made = self._ahead.take(fields) if self._ahead is not None and is_next else None
        if made is None:
            made = self._to_output(_numbers(fields, dtypes))
        batch: Any = dict(made)
        for function in self._functions[: self._before_choice]:
            batch = function(batch, self._kind, place)
        if isinstance(batch, dict):
            batch = self._chosen(batch, [name for name, _ in fields])
        for function in self._functions[self._before_choice :]:
            batch = function(batch, self._kind, place)
        if isinstance(batch, dict):
            batch = self._names.given(batch)
            if self._kind == "tuple":
                batch = tuple(batch.values())
        if self._collate is not None:
            return self._collate(_functions.split_samples(batch))
        return _batch.BatchDict(batch) if type(batch) is dict else batch

    def names(self, delivered: Iterable[str]) -> list[str]:
        """The names of the values of a batch in their order, as far as no function of the user's makes others.

        Args:
            delivered: the fields of the engine.
        """
        delivered = list(delivered)
        batch = self._chosen(dict.fromkeys((*delivered, *self._added)), delivered)
        return [self._names.name_of(field) for field in batch]

    def _chosen(self, batch: dict[str, Any], delivered: Iterable[str]) -> dict[str, Any]:
        """The fields that were asked for, in that order; then those that nobody could name: of ids=, or of a
        function of batches. All, if none was asked for that ops add."""
        if not self._asks_for_added:
            return batch
        others = {*self._added, *(() if self.fields else delivered)} - _UNASKED
        rest = [name for name in batch if name not in self._asked and name not in others]
        return {name: batch[name] for name in (*self._asked, *rest) if name in batch}


def _check_drawn_apart(ops: Sequence[_ops.Op]) -> None:
    """Raises `InvalidArgument` if functions of batches move two pictures of a sample apart, as the engine does of
    functions of samples."""
    pictures = {
        op._to or ("mask" if isinstance(op, _ops.DecodeMask) else "image")
        for op in ops if isinstance(op, (_ops.DecodeImage, _ops.DecodeMask))
    }  # fmt: skip
    drawn = {
        op._field: op for op in ops
        if isinstance(op, _ops.Python) and op.per == "batch" and op.draws_alone and op._field in pictures
    }  # fmt: skip
    if len(drawn) > 1:
        (one, first), (other, second) = list(drawn.items())[:2]
        raise InvalidArgument(
            f"{first!r} draws for {one!r}, and {second!r} for {other!r} of the same samples, each by itself: leave out "
            "field=, and the function gets the whole batch; or say independent=True if they do not belong together"
        )


def _batch_functions(ops: Sequence[_ops.Op]) -> list[Callable[..., Any]]:
    """The functions that make the batch, in the order of their ops."""
    functions: list[Callable[..., Any]] = []
    is_own = True  # Until a function of the user's has seen the batch, who may keep it.
    for place, op in enumerate(ops):
        if isinstance(op, BatchOp):
            functions.append(op.for_batch(place, is_own=is_own))
        elif isinstance(op, _ops.Python) and op.per == "batch":
            functions.append(op.for_batch(place))
            is_own = False
    return functions


def _before_choice(ops: Sequence[_ops.Op]) -> int:
    """The number of functions that make the batch before the fields are chosen that were asked for: those before the
    first function of the user's that gets the whole batch; all, if an op behind that one adds fields."""
    of_batches = [op for op in ops if isinstance(op, BatchOp) or (isinstance(op, _ops.Python) and op.per == "batch")]
    for before, op in enumerate(of_batches):
        if isinstance(op, _ops.Python) and op._field is None:
            add_later = any(getattr(each, "adds", ()) for each in of_batches[before:])
            return len(of_batches) if add_later else before
    return len(of_batches)


def _numbers(fields: list[tuple[str, Any]], dtypes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Fields whose bytes are rows of numbers become those."""
    return [(name, _rows(value, dtypes.get(name))) for name, value in fields] if dtypes else fields


def _rows(value: Any, rows: Any) -> Any:
    """Bytes as rows of numbers, over the same memory."""
    if rows is None or not isinstance(value, tuple):
        return value
    values, offsets, shapes = value
    if values.dtype != np.uint8 or shapes is not None:
        return value  # A function of the user's made it.
    numbers = rows.numbers_in(values)
    if rows.is_ragged:
        return numbers, offsets // rows.dtype.itemsize, None
    if rows.shape is None and len({*np.diff(offsets).tolist()}) > 1:
        raise InvalidArgument("samples of a batch have unequal numbers of values, and their dataset says that all have one")
    return numbers.reshape(len(offsets) - 1, *((-1,) if rows.shape is None else rows.shape))
