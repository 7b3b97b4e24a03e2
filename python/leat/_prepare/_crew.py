"""Hands, which do units, and the threads of this process that give them units."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import as_completed
from typing import Any, Protocol

from leat import errors
from leat._pool import threads
from leat._prepare._claims import Claims
from leat._prepare._left import Left
from leat._prepare._state import State
from leat.errors import Error, Internal

_FIRST_PAUSE = 0.5


class Hand(Protocol):
    """Does one unit at a time: a process of this machine, or a task of a cluster."""

    def ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Does the unit `asked["unit"]` of the step `asked["step"]`; returns what `_steps.do` says, or that it died."""

    def close(self) -> None:
        """Ends it, whatever it is doing."""


class Crew:
    """Some hands. A context manager: it leaves none behind.

    Not thread-safe, except that its own threads use one hand each.
    """

    def __init__(self, hands: Sequence[Hand], state: State, claims: Claims, retries: int) -> None:
        self._hands, self._state, self._claims, self._retries = hands, state, claims, retries
        self._over = threading.Event()
        self._free: queue.Queue[Hand] = queue.Queue()
        """The hands that no thread uses."""
        for hand in hands:
            self._free.put(hand)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        for hand in self._hands:
            hand.close()

    def do(self, number: int, name: str, left: Left) -> None:
        """Does what is left of a step, until all of it is done, here or elsewhere.

        Raises:
            leat.Error: a unit failed, and another try would not help, or none was left. Units that
                were begun are done nevertheless, and no others.
        """
        # A claim in a bucket takes a second, in which the last unit is still under way.
        count = len(self._hands) * (1 if self._state.is_folder else 2)
        failed: BaseException | None = None
        with threads(count, "leat-prepare") as pool:
            try:
                for future in as_completed([pool.submit(self._work, number, name, left) for _ in range(count)]):
                    failed = failed or future.exception() or future.result()
            except BaseException:
                left.stop()
                self.__exit__()
                raise
        if failed is not None:
            raise failed

    def _work(self, number: int, name: str, left: Left) -> Error | None:
        """Does units until there are none; the error of one that failed."""
        try:
            while not self._over.is_set() and (unit := left.next()) is not None:
                hand = self._free.get()
                if self._over.is_set():  # While it waited.
                    self._free.put(hand)
                    return None
                self._claims.begins(name, unit)
                try:
                    error = self._try(hand, number, name, unit)
                finally:
                    self._free.put(hand)
                is_failed = error is not None and not self._over.is_set()  # Else its hand was closed under it.
                self._claims.ends(name, unit, str(error) if is_failed else "")
                if error is not None:
                    left.stop()
                    return error
                left.did(unit)
        except BaseException:
            left.stop()
            raise
        return None

    def _try(self, hand: Hand, number: int, name: str, unit: int) -> Error | None:
        pause = _FIRST_PAUSE
        for left in range(self._retries, -1, -1):
            told = hand.ask({"step": number, "unit": unit})
            if "error" not in told:
                return None
            if self._over.is_set():
                break
            is_last = not left or not told["again"]
            self._state.log("failed" if is_last else "retry", step=name, unit=unit, error=told["error"])
            if is_last or self._over.wait(pause):
                break
            pause *= 2
        return getattr(errors, told["kind"], Internal)(f"step {name}, unit {unit}: {told['error']}")
