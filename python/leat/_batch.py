"""A batch as the program gets it: a tuple, or a dict that cannot be mistaken for one."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from leat.errors import InvalidArgument

_UNPACKING = {dis.opmap["UNPACK_SEQUENCE"], dis.opmap["UNPACK_EX"]}


class BatchDict(dict):
    """A dict of name to array that refuses ``images, labels = batch``.

    If a program unpacked a plain dict, it would get two of its names, and training would
    continue with texts. Otherwise it works like any dict: ``for name in batch``,
    ``list(batch)``, ``dict(batch)``, ``model(**batch)``.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        caller = sys._getframe(1)
        if caller.f_code.co_code[caller.f_lasti] in _UNPACKING:
            names = ", ".join(f'"{name}"' for name in dict.__iter__(self))
            raise TypeError(
                f"a batch is a dict of {names}, and unpacking it would give these names, not "
                "the arrays: give leat.Loader(…, batch=\"tuple\") "
                f"for a tuple in that order, or take batch[{next(dict.__iter__(self), '')!r}]"
            )
        return super().__iter__()


def fields_of(fields: Any) -> tuple[list[str], dict[str, str]]:
    """The fields that are read, and the names of those that get another one.

    Args:
        fields: their names; or a dict, from a name in the batch to the field; None for all.

    Raises:
        leat.InvalidArgument: something else, or a field twice.
    """
    is_mapping = isinstance(fields, Mapping)
    read = list(fields.values() if is_mapping else fields or ())
    given = list(fields) if is_mapping else read
    if isinstance(fields, str) or not all(isinstance(name, str) for name in (*read, *given)):
        raise InvalidArgument(
            f'fields={fields!r}; it is a list of names, such as ("image", "label"), or a dict '
            'from names in the batch to fields, such as {"pixels": "image"}'
        )
    if is_mapping and len(set(read)) < len(read):
        raise InvalidArgument(f"fields={fields!r} names a field twice")
    return read, {field: name for field, name in zip(read, given) if field != name}


def choose(batch: str, has_names: bool, fields: Sequence[str]) -> str:
    """Which kind of batch there is: ``"dict"`` or ``"tuple"``.

    Args:
        has_names: the fields have been given names of their own in the batch.

    Raises:
        leat.InvalidArgument: there is no such kind.
    """
    if batch not in ("auto", "dict", "tuple"):
        raise InvalidArgument(f'batch={batch!r}; it is "auto", "dict" or "tuple"')
    if batch == "auto":
        return "tuple" if fields and not has_names else "dict"
    return batch


class Names:
    """The names that fields have in a batch.

    Args:
        others: from a field to its name, of those that do not keep theirs.
    """

    def __init__(self, others: Mapping[str, str]) -> None:
        self._others = others
        self._are_known = not others

    def check_direction(self, fields: Iterable[str]) -> None:
        """Raises `InvalidArgument` if the dict was meant the other way round.

        Args:
            fields: of the dataset.
        """
        there = set(fields)
        for field, name in self._others.items():
            if field not in there and name in there:
                raise InvalidArgument(
                    f"fields={{{name!r}: {field!r}}}: the dataset has {name!r} and no {field!r}; the "
                    f"dict goes from names in the batch to fields: {{{field!r}: {name!r}}}"
                )

    def expect(self, delivered: Sequence[str]) -> None:
        """These fields will come. Raises `InvalidArgument` if they cannot be named so."""
        self._check(delivered)
        self._are_known = True

    def given(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with these names."""
        if not self._others:
            return batch
        if not self._are_known:
            self._check(tuple(batch))
        return {self._others.get(field, field): value for field, value in batch.items()}

    def _check(self, delivered: Sequence[str]) -> None:
        for field, name in self._others.items():
            if field not in delivered:
                raise InvalidArgument(
                    f"fields= calls {field!r} {name!r}, but a batch has only: {', '.join(delivered)}"
                )
        made = [self._others.get(field, field) for field in delivered]
        for name in made:
            if made.count(name) > 1:
                raise InvalidArgument(f"fields= would give two fields the name {name!r}")


def register_as_tree(output: str) -> None:
    """Tells jax, or torch, that a batch is a tree of its fields, as they know of a dict."""
    if output == "jax":
        _register_with_jax()
    elif output == "torch":
        _register_with_torch()


def _made(values: Any, names: Any) -> BatchDict:
    return BatchDict(zip(names, values))


def _register_with_jax() -> None:
    from jax import tree_util

    def parts(batch: BatchDict) -> Any:
        return tuple((tree_util.DictKey(n), v) for n, v in batch.items()), tuple(batch)

    try:
        tree_util.register_pytree_with_keys(BatchDict, parts, lambda names, v: _made(v, names))
    except ValueError:  # Another loader has.
        pass


def _register_with_torch() -> None:
    from torch.utils import _pytree

    # torch has it from 2.2 on.
    register = getattr(_pytree, "register_pytree_node", None)
    if register is not None and BatchDict not in _pytree.SUPPORTED_NODES:
        register(BatchDict, lambda batch: (list(batch.values()), list(batch)), _made,
                 serialized_type_name="leat.BatchDict")  # fmt: skip
