"""Reading ahead as DELI does, to compare with."""

from __future__ import annotations

from dataclasses import dataclass

from leat.errors import InvalidArgument


@dataclass(frozen=True)
class FetchAhead:
    """How DELI (IC2E 2021) reads ahead: in fetches of many samples at once.

    Samples are drawn a batch at a time. Before each draw, if ``queue_threshold`` or
    fewer of those asked for are left, the loader asks for ``fetch_size`` more; it asks
    for nothing of an epoch before it begins. Fetched samples wait in ``memory=`` for
    their batch, and a ``cache=leat.Cache(policy="fifo")`` keeps them. Without it a
    loader looks as far ahead as latency and the rate of training ask for.

    Args:
        fetch_size: F, samples of a fetch.
        queue_threshold: T, of those asked for and not yet drawn.

    Raises:
        leat.InvalidArgument: not whole numbers, or a fetch of none.
    """

    fetch_size: int = 1024
    queue_threshold: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (
            ("fetch_size", self.fetch_size, 1),
            ("queue_threshold", self.queue_threshold, 0),
        ):
            if isinstance(value, bool) or not (
                isinstance(value, int) and least <= value < 2**63
            ):
                raise InvalidArgument(
                    f"{name}={value!r}; it is a number of samples, at least {least}"
                )


def pair_of(fetch_ahead: FetchAhead | None) -> tuple[int, int] | None:
    """The two numbers for the engine."""
    if fetch_ahead is None:
        return None
    if isinstance(fetch_ahead, FetchAhead):
        return fetch_ahead.fetch_size, fetch_ahead.queue_threshold
    raise InvalidArgument(
        f"fetch_ahead={fetch_ahead!r}; it is a leat.FetchAhead, such as "
        "leat.FetchAhead(fetch_size=1024, queue_threshold=1024)"
    )
