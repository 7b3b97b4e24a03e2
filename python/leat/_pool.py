"""Threads that may wait for a store for minutes, and that Ctrl-C does not wait for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor


@contextlib.contextmanager
def threads(count: int | None, name: str) -> Iterator[ThreadPoolExecutor]:
    """A pool. On an error, its threads that are at work are waited for; on Ctrl-C they are not.

    Python itself waits for them before it ends, unless `_commands.main` knows their name.
    """
    pool = ThreadPoolExecutor(count, name)
    is_waited_for = True
    try:
        yield pool
    except BaseException as error:
        is_waited_for = isinstance(error, Exception)
        raise
    finally:
        pool.shutdown(is_waited_for, cancel_futures=True)
