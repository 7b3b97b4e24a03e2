"""Whether functions of several processes do the same, as far as their code and what they hold show it.

Processes that share batches compare words of their functions of samples. Words are a hash of all that a function
reaches: its code, defaults and closure, the globals that it names, and what modules of the job's own hold under names
that it names; and so on, through each function, each class with all its methods, and each object. Installed
packages are the same everywhere, so their code is passed over, but not that of the function's own package, unless that
is a library that everybody uses. Equal words are no proof: a function may ask something outside. The names by which one
usually asks which process it is in are refused.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib.util
import inspect
import io
import os
import pickle
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

_ASKS = re.compile(
    r"environ|getenv|getpid|gethostname|get_coordinate|current_device|process_index|get_\w*rank\w*|(?:local|global)_rank"
    r"|globals|locals|vars"
)
"""Names by which a function may learn which process it is in: of Python, torch, JAX, Megatron and trainers. By the last
it reaches what no name of its code tells."""
_LIBRARIES = {
    "numpy", "scipy", "torch", "torchvision", "torchaudio", "PIL", "cv2", "skimage", "albumentations", "kornia", "jax",
    "tensorflow", *sys.stdlib_module_names,
}  # fmt: skip
"""Packages whose functions do not ask which process they are in, but for those names."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MOST_BYTES = 256 << 20
_CACHE = type(functools.lru_cache(maxsize=None)(len))


def in_words(function: Any) -> str:
    """Equal for functions that do the same, in all processes.

    Raises:
        ValueError: it asks which process it is in, or holds too much to compare.
        Exception: nobody can tell; pickle raises what it likes.
    """
    hashed = _Hashed()
    _Words(hashed, _package_of(function)).dump(function)
    return hashed.digest.hexdigest()


class _Hashed(io.RawIOBase):
    """A file that keeps the hash of what is written to it."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._left = _MOST_BYTES

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self.take(size)
        self.digest.update(data)
        return size

    def take(self, size: int) -> None:
        """Raises if there is no room for this many bytes more."""
        if size > self._left:
            raise ValueError(f"it holds more than {_MOST_BYTES >> 20} MiB, which are too many to compare")
        self._left -= size


class _Words(pickle.Pickler):
    """Pickles functions and classes with what they do. Nobody reads it back.

    Args:
        own: the package that is looked at, though it may be installed.
    """

    def __init__(self, hashed: _Hashed, own: str) -> None:
        super().__init__(hashed, protocol=5)
        self._hashed, self._own = hashed, own

    def persistent_id(self, value: Any) -> Any:
        """The order of a set of texts is each process's own."""
        if type(value) in (set, frozenset) and all(type(each) in _PLAIN for each in value):
            return "set", sorted(map(repr, value))
        return None

    def reducer_override(self, value: Any) -> Any:
        """The name, and as its state what it does: so it may reach itself."""
        size = getattr(value, "nbytes", 0)  # An array's: it is copied before its bytes come.
        if isinstance(size, int) and size > _MOST_BYTES:
            self._hashed.take(size)
        if _asks(getattr(value, "__name__", None)):
            raise ValueError(f"it calls {value.__name__}, which may differ")
        if isinstance(value, ModuleType):
            if not self._is_passed_over(value.__name__):
                raise ValueError(f"it holds the module {value.__name__}, and nobody can tell what of it is used")
            return str, (value.__name__,)
        if inspect.isfunction(value):
            return str, (f"{value.__module__}.{value.__qualname__}",), self._of_function(value)
        if inspect.ismethod(value):
            return str, ("method",), (value.__func__, value.__self__)
        if isinstance(value, type) and not self._is_passed_over(value.__module__):
            return str, (f"{value.__module__}.{value.__qualname__}",), (value.__bases__, _held_by(value))
        if inspect.isbuiltin(value) and isinstance(value.__self__, (ModuleType, type(None))):
            return str, (f"{value.__module__}.{value.__qualname__}",)
        if isinstance(value, _CACHE):  # Others that wrap hold more than that, and pickle looks at all of it.
            return str, (type(value).__qualname__,), value.__wrapped__
        return NotImplemented

    def _of_function(self, function: Any) -> Any:
        code, world = function.__code__, function.__globals__
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        held = cells, function.__defaults__, function.__kwdefaults__
        if self._is_passed_over(world.get("__name__", "")):
            return held
        names = sorted({*_names_in(code)})
        if asked := [name for name in names if _asks(name)]:
            raise ValueError(f"{function.__qualname__} asks for {asked[0]}, which may differ")
        for module in _imported_in(code):
            if not self._is_passed_over(module):
                raise ValueError(f"{function.__qualname__} imports {module}, and nobody can tell what is in it")
        reached = [(each, world[each]) for each in sorted({*_globals_in(code)}) if each in world]
        looked_at: list[Any] = []
        for _, value in reached:  # It grows.
            if isinstance(value, ModuleType) and value not in looked_at and not self._is_passed_over(value.__name__):
                looked_at.append(value)
                reached += [(f"{value.__name__}.{each}", vars(value)[each]) for each in names if each in vars(value)]
        named = [(each, value.__name__ if isinstance(value, ModuleType) else value) for each, value in reached]
        # Whether it calls what it wraps, its code says.
        own = {name: each for name, each in vars(function).items() if name != "__wrapped__"}
        return (*held, hashlib.sha256(repr(_code_in_words(code)).encode()).hexdigest(), own, named)

    def _is_passed_over(self, module: str) -> bool:
        package = module.partition(".")[0]
        return package in _LIBRARIES or package != self._own and _is_installed(package)


def _asks(name: Any) -> bool:
    return isinstance(name, str) and _ASKS.fullmatch(name) is not None


def _package_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "function", function)  # A Filter's.
    return str(getattr(function, "__module__", "")).partition(".")[0]


def _held_by(owner: type) -> list[tuple[str, Any]]:
    """The methods of a class, of its properties too, and its values."""
    held = []
    for name, value in sorted(vars(owner).items()):
        value = getattr(value, "__func__", value)
        if isinstance(value, (property, functools.cached_property)):
            value = [getattr(value, each, None) for each in ("fget", "fset", "fdel", "func")]
        is_given = name.startswith("__") or name == "_abc_impl" or inspect.isdatadescriptor(value)
        if inspect.isfunction(value) or name == "__call__" or not is_given:
            held.append((name, value))
    return held


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


def _imported_in(code: CodeType) -> Iterator[str]:
    """The modules that are imported when it is called; those beside its own begin with a dot."""
    instructions = [*dis.get_instructions(code)]
    for place, instruction in enumerate(instructions):
        if instruction.opname == "IMPORT_NAME":
            yield "." * instructions[place - 2].argval + instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported_in(constant)


def _code_in_words(code: CodeType) -> Any:
    return code.co_code, code.co_names, [_constant_in_words(each) for each in code.co_consts]


def _constant_in_words(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _code_in_words(value)
    return ("set", sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)


@functools.lru_cache(maxsize=None)
def _folders_of_packages() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    installed = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [*installed, *site.getsitepackages(), site.getusersitepackages()]
    return tuple(os.path.join(folder, "") for folder in folders)


@functools.lru_cache(maxsize=None)
def _is_installed(package: str) -> bool:
    """Whether it is one that somebody installed, or Python's own: what it does depends on its arguments."""
    if package == "leat":
        return True
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # "__main__", or made up.
        return False
    if spec is None:
        return False
    where = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return where in ("built-in", "frozen") or where.startswith(_folders_of_packages())
