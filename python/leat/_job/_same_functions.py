"""Whether functions of several processes do the same, as far as their code and what they hold show it.

Processes that share batches compare words of their functions of samples. Words are equal if code,
defaults, closures and the globals that the code names are equal; functions that these call are
followed, but for those of installed packages. Equal words are no proof: a function may ask
something outside. The names by which one usually asks which process it is in are refused.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import pickle
import sysconfig
from collections.abc import Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

_ASKS = {
    "environ", "getenv", "getpid", "get_rank", "get_local_rank", "get_node_local_rank", "get_coordinate",
    "current_device",
}  # fmt: skip
"""Names by which a function may learn which process it is in."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MOST_BYTES = 256 << 20


def in_words(function: Any) -> Any:
    """Equal for functions that do the same, in all processes.

    Raises:
        ValueError: it asks which process it is in.
        Exception: nobody can tell; pickle raises what it likes.
    """
    return _Words().of(function)


class _Words:
    def __init__(self) -> None:
        self._seen: set[int] = set()
        """Functions by their id; whoever gives one holds it."""

    def of(self, function: Any) -> Any:
        if isinstance(function, functools.partial):
            held = _pickled((function.args, sorted(function.keywords.items())))
            return "partial", self.of(function.func), held
        if inspect.isfunction(function):
            return self._of_function(function, None)
        if inspect.ismethod(function) and inspect.isfunction(function.__func__):
            owner = function.__self__ if inspect.isclass(function.__self__) else type(function.__self__)
            return "method", self._of_function(function.__func__, owner), self._of_value(function.__self__)
        if hasattr(function, "function") and hasattr(function, "name"):  # A Filter's.
            return "filter", function.name, self.of(function.function)
        call = inspect.getattr_static(type(function), "__call__", None)
        if not inspect.isfunction(call):
            return "object", _pickled(function)
        return "object", self._of_function(call, type(function)), _pickled(function)

    def _of_function(self, function: Any, owner: type | None) -> Any:
        """``owner``: the class whose method it is, if any; methods that it calls are followed too."""
        code = function.__code__
        name = ("function", function.__module__, function.__qualname__)
        if id(function) in self._seen:
            return name
        self._seen.add(id(function))
        cells = self._of_values(cell.cell_contents for cell in function.__closure__ or ())
        named = tuple(sorted((function.__kwdefaults__ or {}).items()))
        defaults = self._of_values([function.__defaults__ or (), named])
        if _is_installed(code):
            return (*name, cells, defaults)
        names = sorted({*_names_in(code)})
        if asked := _ASKS.intersection(names):
            raise ValueError(f"{function.__qualname__} asks for {min(asked)}, which may differ")
        world = function.__globals__
        known = [(each, self._of_value(world[each])) for each in sorted({*_globals_in(code)}) if each in world]
        methods = [self._of_method(each, owner) for each in names] if owner is not None else []
        return (*name, _code_in_words(code), cells, defaults, known, methods)

    def _of_method(self, name: str, owner: type) -> Any:
        found = inspect.getattr_static(owner, name, None)
        found = getattr(found, "__func__", getattr(found, "fget", found))  # A class's, a property's.
        return self._of_function(found, owner) if inspect.isfunction(found) else None

    def _of_values(self, values: Iterable[Any]) -> list[Any]:
        return [self._of_value(value) for value in values]

    def _of_value(self, value: Any) -> Any:
        if isinstance(value, (ModuleType, type)) or inspect.isbuiltin(value):
            return type(value).__name__, getattr(value, "__module__", ""), value.__name__
        if inspect.isfunction(value) or inspect.ismethod(value) or isinstance(value, functools.partial):
            return self.of(value)
        if isinstance(value, (set, frozenset)):
            return _set_in_words(value)
        if isinstance(value, tuple):
            return self._of_values(value)
        if isinstance(value, _PLAIN):
            return repr(value)
        return _pickled(value)


def _pickled(value: Any) -> bytes:
    found = pickle.dumps(value)
    if len(found) > _MOST_BYTES:
        raise ValueError(f"it holds {type(value).__name__} of {len(found)} bytes, which are too many to compare")
    return found


def _set_in_words(values: Iterable[Any]) -> Any:
    """The order of a set of texts is each process's own."""
    return "set", sorted(map(repr, values))


def _names_in(code: CodeType) -> Iterator[str]:
    """The globals and attributes that it names, and those that functions within it name."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _globals_in(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant)


def _code_in_words(code: CodeType) -> Any:
    return code.co_code, code.co_names, [_constant_in_words(each) for each in code.co_consts]


def _constant_in_words(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _code_in_words(value)
    return _set_in_words(value) if isinstance(value, frozenset) else repr(value)


@functools.lru_cache(maxsize=None)
def _folders_of_packages() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.join(paths[name], "") for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_installed(code: CodeType) -> bool:
    """Whether it is of an installed package, or of Python's own: what it does depends on its arguments."""
    return code.co_filename.startswith(_folders_of_packages()) or code.co_filename.startswith("<frozen")
