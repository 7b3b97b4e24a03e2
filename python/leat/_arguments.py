"""The arguments of a public class: their names, and whole numbers and switches among them."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, TypeVar

import numpy as np

from leat.errors import InvalidArgument

_Target = TypeVar("_Target", bound=Callable[..., Any])
_NONE: Mapping[str, str] = MappingProxyType({})


def checks_names(moved: Mapping[str, str] = _NONE) -> Callable[[_Target], _Target]:
    """Makes an unknown argument a TypeError that names the nearest known one.

    Decorates a class, whose ``__init__`` it wraps, or a function.

    Args:
        moved: from a name that is not an argument here, to what to give in its place.
    """

    def decorate(target: _Target) -> _Target:
        if not isinstance(target, type):
            return _checked(target, target.__qualname__, moved)
        init = vars(target)["__init__"]
        setattr(target, "__init__", _checked(init, target.__name__, moved))
        return target

    return decorate


def _checked(function: Any, name: str, moved: Mapping[str, str]) -> Any:
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)][1:]

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for argument in given:
            if argument not in known:
                said = type(args[0]).__name__ if name.startswith("_") else name  # The base of public classes.
                raise TypeError(unknown_name(f"{said} has no argument", argument, known, moved))
        return function(*args, **given)

    return call


def unknown_name(
    has_none: str, name: str, known: list[str], moved: Mapping[str, str] = _NONE
) -> str:
    """Says of a name that there is none such, and which one may have been meant."""
    said = f"{has_none} {name!r}"
    if name not in moved:
        near = difflib.get_close_matches(name.lower(), [*known, *moved], n=1)
        if not near:
            return f"{said}; there are {', '.join(known)}"
        if near[0] in known:
            return f"{said}; did you mean {near[0]!r}?"
        said, name = f"{said}, nor {near[0]!r}", near[0]
    return f"{said}: {moved[name]}"


def count(name: str, value: int | None, *, at_least: int = 0, below: int = 2**63) -> int:
    """A whole number; 0 for None, which lets the engine choose.

    Raises:
        leat.InvalidArgument: it is no whole number, or one that cannot be.
    """
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgument(f"{name}={value!r}; it is a whole number")
    value = value.__index__()
    if not at_least <= value < below:
        raise InvalidArgument(f"{name}={value}; it is at least {at_least} and below {below}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False, which may be numpy's.

    Raises:
        leat.InvalidArgument: it is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgument(f"{name}={value!r}; it is True or False")
    return bool(value)
