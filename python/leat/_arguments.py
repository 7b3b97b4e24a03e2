"""Checks a loader's arguments, and converts them for the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leat.errors import InvalidArgument


def count(
    name: str, value: int | None, *, at_least: int = 0, below: int = 2**63
) -> int:
    """0 if there is none: the engine then chooses."""
    if value is None:
        return 0
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidArgument(f"{name}={value!r}; it is a whole number")
    value = value.__index__()
    if not at_least <= value < below:
        raise InvalidArgument(
            f"{name}={value}; it is at least {at_least} and below {below}"
        )
    return value


def tuning(tune: object) -> dict[str, Any]:
    """The tuner's arguments for the engine: whether it runs, and from where
    it begins."""
    start = tune if isinstance(tune, dict) else {}
    if not isinstance(tune, (bool, dict)) or set(start) - {"threads", "max_in_flight"}:
        raise InvalidArgument(
            f"tune={tune!r}; it is True, False or where to begin, such as "
            '{"threads": 1, "max_in_flight": 1}'
        )
    return {
        "tune": tune is not False,
        "start_threads": count("threads", start.get("threads"), at_least=1),
        "start_in_flight": count(
            "max_in_flight", start.get("max_in_flight"), at_least=1
        ),
    }


def order_of(train: bool | None, shuffle: object, drop_last: bool | None) -> tuple[str, bool | None]:
    """Which shuffle, and whether the tail is dropped (None: as usual for that shuffle).

    Raises:
        leat.InvalidArgument: nothing says whether to shuffle, or nothing that can be.
    """
    if train is not None and not isinstance(train, bool):
        raise InvalidArgument(f"train={train!r}; it is True or False")
    if shuffle is None:
        if train is None:
            raise InvalidArgument(
                "nothing says whether this loader trains or reads: give train=True (shuffled, "
                "without the last incomplete step) or train=False (in order, every sample), "
                "or say shuffle= itself"
            )
        shuffle = train
    if train is False and drop_last is None:
        drop_last = False
    return _shuffle(shuffle), drop_last


def _shuffle(shuffle: object) -> str:
    if isinstance(shuffle, bool):
        return "auto" if shuffle else "none"
    if shuffle in ("full", "block", "stream"):
        return str(shuffle)
    raise InvalidArgument(
        f'shuffle={shuffle!r}; it is True, False, "full", "block" or "stream"'
    )


def names_of(fields: Sequence[str] | None) -> list[str]:
    names = list(fields or ())
    if isinstance(fields, str) or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(
            f'fields={fields!r}; it is a list of names, such as ("image", "label")'
        )
    return names
