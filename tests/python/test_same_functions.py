"""Functions that do the same have the same words in all processes, and others have not."""

from __future__ import annotations

import contextlib
import functools
import os

import numpy as np
import pytest

from leat._job._same_functions import in_words
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


@pytest.mark.parametrize("asks", [calls_helper, asks_within, Asking(0), Asking(0).turned, functools.partial(calls_helper, 1)])
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


def test_what_nobody_can_compare_is_refused():
    lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match="pickle"):
        in_words(lambda value: (lock, value))


def chooses(value):
    return value in CHOSEN or value in {"fox", "gnu", "hen", "ibis", "jay"}


def test_processes_whose_sets_have_other_orders_agree():
    said = [
        run_python("import test_same_functions as of; print(of.in_words(of.chooses))", PYTHONHASHSEED=seed,
                   PYTHONPATH=f"{os.path.dirname(__file__)}:{os.environ.get('PYTHONPATH', '')}").stdout
        for seed in ("1", "2")
    ]  # fmt: skip

    assert said[0] == said[1] != ""
