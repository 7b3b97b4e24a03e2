"""A batch as the program gets it: a tuple, or a dict that cannot be mistaken for one."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any, NoReturn

from leat.errors import InvalidArgument

_UNPACKING = {dis.opmap["UNPACK_SEQUENCE"], dis.opmap["UNPACK_EX"]}
_CALLING = dis.opmap["CALL_FUNCTION_EX"]  # f(*batch)
_EXTENDING = dis.opmap["LIST_EXTEND"]  # f(x, *batch), before the call; [*batch], too.


class BatchDict(dict):
    """A dict of name to array that refuses ``images, labels = batch`` and ``f(*batch)``.

    If a program unpacked a plain dict, it would get two of its names, and training would
    continue with texts. Otherwise it works like any dict: ``for name in batch``,
    ``list(batch)``, ``dict(batch)``, ``model(**batch)``.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        if _unpacks(sys._getframe(1), self):
            raise TypeError(
                f"a batch is a dict of {self._names()}, and unpacking it would give these names, not "
                "the arrays: give leat.Loader(…, batch=\"tuple\") "
                f"for a tuple in that order, or take batch[{next(dict.__iter__(self), '')!r}]"
            )
        return super().__iter__()

    def __missing__(self, key: Any) -> NoReturn:
        says = f"a batch is a dict of {self._names()}, and has no {key!r}"
        if hasattr(key, "__index__") or isinstance(key, slice):
            says += ": give leat.Loader(…, batch=\"tuple\") for a tuple in that order"
        raise _NoFieldError(says)

    def _names(self) -> str:
        return ", ".join(f'"{name}"' for name in dict.__iter__(self))


class _NoFieldError(KeyError):
    """Shows its text as it is, where a KeyError shows it in quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


def _unpacks(caller: FrameType, batch: BatchDict) -> bool:
    """Whether the caller iterates over the batch because it unpacks it."""
    code, at = caller.f_code, caller.f_lasti
    instruction = code.co_code[at]
    if instruction == _CALLING:
        return not _passes_on(caller, batch)
    if instruction == _EXTENDING:
        return _becomes_tuple(code, at)
    return instruction in _UNPACKING


def _passes_on(caller: FrameType, batch: BatchDict) -> bool:
    """Whether a wrapper calls ``f(*args)``, and the batch is one of its `args`."""
    own = caller.f_locals.values()
    return not any(value is batch for value in own) and any(
        item is batch for value in own if type(value) is tuple for item in value
    )


def _becomes_tuple(code: CodeType, at: int) -> bool:
    """Whether a list that is extended there becomes a tuple, as the arguments of a call do."""
    above = 0  # Values that lie on the list.
    begin = at + 1
    for one in dis.get_instructions(code):
        if one.offset < begin:
            continue
        if one.opname == "JUMP_FORWARD":  # From one branch of an `if` among the arguments.
            begin = one.argval
            continue
        # An instruction until Python 3.11, and then a function of the interpreter.
        if above == 0 and "LIST_TO_TUPLE" in one.opname + one.argrepr:
            return True
        above += dis.stack_effect(one.opcode, one.arg, jump=False)
        if above < 0:
            return False
    return False


def fields_of(fields: Any) -> tuple[list[str], dict[str, str]]:
    """The fields that are read, and the names of those that get another one.

    Args:
        fields: their names; or a dict, from a name in the batch to the field; None for all.

    Raises:
        leat.InvalidArgument: something else, or a field twice.
    """
    is_mapping = isinstance(fields, Mapping)
    is_list = fields is None or isinstance(fields, Iterable)
    read = list(fields.values() if is_mapping else fields or ()) if is_list else []
    given = list(fields) if is_mapping else read
    if isinstance(fields, str) or not is_list or not all(isinstance(name, str) for name in (*read, *given)):
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
        return {self.name_of(field): value for field, value in batch.items()}

    def name_of(self, field: str) -> str:
        """The name of one field."""
        return self._others.get(field, field)

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
