"""A batch as the program gets it: a tuple, or a dict that is not mistaken for one."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from leat.errors import InvalidArgument

_UNPACKING = {dis.opmap["UNPACK_SEQUENCE"], dis.opmap["UNPACK_EX"]}


class BatchDict(dict):  # type: ignore[type-arg]
    """A dict of name to array that refuses ``images, labels = batch``.

    Unpacking a plain dict would give two of its names, and training would go on with
    texts. All else is as for any dict: ``for name in batch``, ``list(batch)``,
    ``dict(batch)``, ``model(**batch)``.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        caller = sys._getframe(1)
        if caller.f_code.co_code[caller.f_lasti] in _UNPACKING:
            names = ", ".join(f'"{name}"' for name in self)
            raise TypeError(
                f"a batch is a dict of {names}, and unpacking it would give these names, not "
                f"the arrays: give leat.Loader(fields=({names}{',' if len(self) == 1 else ''})) "
                f"for a tuple in that order, or take batch[{next(dict.__iter__(self), '')!r}]"
            )
        return super().__iter__()


def choose(batch: str, fields: Sequence[str]) -> str:
    """Which kind of batch there is: ``"dict"`` or ``"tuple"``.

    Raises:
        leat.InvalidArgument: there is no such kind.
    """
    if batch not in ("auto", "dict", "tuple"):
        raise InvalidArgument(f'batch={batch!r}; it is "auto", "dict" or "tuple"')
    if batch == "auto":
        return "tuple" if fields else "dict"
    return batch


def renaming(
    rename: Mapping[str, str] | None, delivered: Sequence[str]
) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
    """Gives the fields of a batch their other names; None if there are none.

    Args:
        delivered: the names that a batch has; empty where nobody knows yet.

    Raises:
        leat.InvalidArgument: no such name, or two fields would have the same one. Also when
            called with a batch, of names that were not known before.
    """
    if not rename:
        return None
    if not isinstance(rename, Mapping) or not all(
        isinstance(name, str) for pair in rename.items() for name in pair
    ):
        raise InvalidArgument(
            f'rename={rename!r}; it is a dict of names, such as {{"label": "labels"}}'
        )
    names = dict(rename)
    if delivered:
        _check(names, delivered)

    def apply(batch: dict[str, Any]) -> dict[str, Any]:
        if not delivered:
            _check(names, tuple(batch))
        return {names.get(name, name): value for name, value in batch.items()}

    return apply


def _check(rename: dict[str, str], delivered: Sequence[str]) -> None:
    for name in rename:
        if name not in delivered:
            raise InvalidArgument(
                f"rename= has {name!r}, but a batch has only: {', '.join(delivered)}"
            )
    made = [rename.get(name, name) for name in delivered]
    for name in made:
        if made.count(name) > 1:
            raise InvalidArgument(f"rename= would give two fields the name {name!r}")


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
