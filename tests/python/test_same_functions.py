"""Functions that do the same have the same words in all processes, and others have not."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types

import numpy as np
import pytest

from leat._job import _same_functions
from leat._job._same_functions import in_words
from leat.ops import Filter
from small_datasets import run_python

TABLE = np.arange(4)
CHOSEN = {"ant", "bee", "cat", "dog", "eel"}


@contextlib.contextmanager
def table(values):
    """As a process of another rank may have it."""
    global TABLE
    before, TABLE = TABLE, values
    try:
        yield
    finally:
        TABLE = before


def by_table(value):
    return TABLE[value]


def calls_by_table(value):
    return [by_table(each) for each in value]


def helper(value):
    return value if os.environ.get("RANK") else -value


def calls_helper(value):
    return helper(value)


def asks_within(value):
    return [os.getenv("RANK") for _ in value]


class Augment:
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __call__(self, value):
        return self.turned(value)

    def turned(self, value):
        return value + self.rank


class Asking(Augment):
    def turned(self, value):
        return value + int(os.environ["RANK"])


def counted(number: int):
    @functools.wraps(helper)
    def wrapped(value):
        return value + number

    return wrapped


def recursive(value):
    return recursive(value - 1) if value else by_table(0)


@pytest.mark.parametrize("asks", [calls_helper, asks_within, Asking(0), Asking(0).turned, functools.partial(calls_helper, 1), Filter(calls_helper).function])
def test_a_function_that_asks_which_process_it_is_in_is_refused(asks):
    with pytest.raises(ValueError, match="asks for (environ|getenv), which may differ"):
        in_words(asks)


@pytest.mark.parametrize("function", [by_table, calls_by_table, recursive, functools.partial(by_table), lambda value: by_table(value)])
def test_what_a_function_reads_is_compared_through_those_that_it_calls(function):
    here = in_words(function)
    with table(np.arange(4)):
        assert in_words(function) == here
    with table(np.arange(1, 5)):
        assert in_words(function) != here


@pytest.mark.parametrize("made", [Augment, lambda rank: Augment(rank).turned, counted, lambda rank: functools.partial(np.add, rank)])
def test_what_a_function_holds_is_compared(made):
    assert in_words(made(1)) == in_words(made(1)) != in_words(made(2))


class Wrapping:
    """A decorator that is an object, as `functools.update_wrapper` makes one."""

    def __init__(self, function, by: int) -> None:
        functools.update_wrapper(self, function)
        self.by = by

    def __call__(self, value):
        return self.__wrapped__(value) + self.by


def called_with(number: int):
    class Called:
        def plus(self, more, value):
            return value + more

        __call__ = functools.partialmethod(plus, number)

    return Called()


@pytest.mark.parametrize("made", [lambda by: Wrapping(by_table, by), called_with])
def test_what_an_object_holds_is_compared_however_it_is_called(made):
    assert made(1)(0) != made(2)(0)
    assert in_words(made(1)) == in_words(made(1)) != in_words(made(2))


@pytest.mark.parametrize("asks", [
    lambda value: globals()["TABLE"][value], lambda value: vars(sys.modules[__name__])["TABLE"][value],
    lambda value: locals()["value"],
])  # fmt: skip
def test_names_that_are_looked_up_by_text_are_refused(asks):
    with pytest.raises(ValueError, match="asks for (globals|vars|locals), which may differ"):
        in_words(asks)


class Tool:
    @staticmethod
    def apply(value):
        return by_table(value)

    def called(self, value):
        return by_table(value)

    def __call__(self, value):
        return by_table(value)


@functools.lru_cache
def kept(value):
    return by_table(value)


def calls(function, value):
    return function(value)


class Renamed:
    def __reduce__(self):
        return Renamed, ()

    call = lambda self, value: by_table(value)  # noqa: E731


TOOL, STEPS, BY_NAME, RENAMED = Tool(), [by_table], {"table": by_table}, Renamed()


@pytest.mark.parametrize("function", [
    lambda value: Tool.apply(value), lambda value: Tool().called(value), lambda value: TOOL(value), TOOL, TOOL.called,
    lambda value: [step(value) for step in STEPS], lambda value: BY_NAME["table"](value), kept,
    lambda value: kept(value), functools.partial(calls, by_table), functools.partial(calls, function=TOOL.called),
    lambda value: RENAMED.call(value), types.MethodType(lambda self, value: by_table(value), STEPS),
])  # fmt: skip
def test_whatever_way_a_function_reaches_another_it_is_followed(function):
    here = in_words(function)
    with table(np.arange(4)):
        assert in_words(function) == here
    with table(np.arange(1, 5)):
        assert in_words(function) != here


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of texts, by the names of its modules."""

    def make(name: str, **texts: str) -> types.ModuleType:
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        for module, text in {"__init__": "", **texts}.items():
            (folder / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path / "packages"))
        return __import__(name, fromlist=["*"])

    yield make
    for name in [name for name in sys.modules if name.startswith("of_a_user")]:
        del sys.modules[name]
    _same_functions._is_installed.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The packages of the fixture `package` count as installed."""
    monkeypatch.setattr(_same_functions, "_folders_of_packages", lambda: (f"{tmp_path}/packages/",))


ASKS = """
import os
def augment(value):
    return value if os.environ["LOCAL_RANK"] == "0" else -value
"""
SHIFTS = """
from of_a_user import config, deep
def augment(value):
    return deep.more.plus(value, config.SHIFT)
def late(value):
    from of_a_user.config import SHIFT
    return value + SHIFT
def late_beside(value):
    from . import config
    return value + config.SHIFT
def late_installed(value):
    import numpy as np
    from os import path
    return np.abs(value), path
"""
DEEP = "from of_a_user import config as more\n"
CONFIG = "SHIFT = 1\ndef plus(value, more):\n    return value + more * SHIFT\n"


def test_an_installed_package_of_the_users_own_is_looked_at(package, installed):
    made = package("of_a_user", steps=ASKS)
    from of_a_user.steps import augment

    with pytest.raises(ValueError, match="augment asks for environ"):
        in_words(augment)
    with pytest.raises(ValueError, match="augment asks for environ"):
        in_words(functools.partial(augment))
    # Another one's does the same in all processes.
    assert made and in_words(lambda value: augment(value))


def test_libraries_that_everybody_uses_are_not_looked_at():
    assert in_words(np.mean) == in_words(np.mean) != in_words(np.std)
    assert in_words(contextlib.suppress)


def test_what_modules_hold_is_compared(package):
    package("of_a_user", steps=SHIFTS, config=CONFIG, deep=DEEP)
    from of_a_user import config, steps

    one, installed_alone = in_words(steps.augment), in_words(steps.late_installed)
    config.SHIFT = 2
    assert in_words(steps.augment) != one
    assert in_words(steps.late_installed) == installed_alone
    for late in (steps.late, steps.late_beside):
        with pytest.raises(ValueError, match="late.* imports .*, and nobody can tell what is in it"):
            in_words(late)
    with pytest.raises(ValueError, match="holds the module of_a_user.config, and nobody can tell"):
        in_words(functools.partial(calls, config))


def test_a_name_that_asks_is_known_by_another_name():
    from os import getpid as number

    with pytest.raises(ValueError, match="calls getpid, which may differ"):
        in_words(lambda value: value + number())


def test_what_nobody_can_compare_is_refused():
    lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match="pickle"):
        in_words(lambda value: (lock, value))


class Large:
    """Says when its bytes are asked for."""

    nbytes = 1 << 40

    def __reduce__(self):
        raise AssertionError("it is pickled whole")


def test_what_is_too_large_to_compare_is_not_pickled(monkeypatch):
    with pytest.raises(ValueError, match="holds more than 256 MiB"):
        in_words(functools.partial(calls, Large()))
    monkeypatch.setattr(_same_functions, "_MOST_BYTES", 1 << 20)
    many = [str(number) for number in range(1_000_000)]
    with pytest.raises(ValueError, match="holds more than 1 MiB"):
        in_words(functools.partial(calls, many))
    assert in_words(functools.partial(calls, many[:1000]))


def chooses(value):
    return value in CHOSEN or value in {"fox", "gnu", "hen", "ibis", "jay"}


def test_processes_whose_sets_have_other_orders_agree():
    said = [
        run_python("import test_same_functions as of; print(of.in_words(of.chooses))", PYTHONHASHSEED=seed,
                   PYTHONPATH=f"{os.path.dirname(__file__)}:{os.environ.get('PYTHONPATH', '')}").stdout
        for seed in ("1", "2")
    ]  # fmt: skip

    assert said[0] == said[1] != ""
