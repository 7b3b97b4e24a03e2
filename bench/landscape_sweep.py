"""The best setting of a peer: each knob in turn, further while the best is at an end of what was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Knob(NamedTuple):
    """A number that a user of the peer chooses: tried first, and the bounds beyond which nothing is tried."""

    start: tuple[int, ...]
    least: int
    most: int

    def within(self, most: int) -> Knob:
        """The same with a lower bound above."""
        most = max(self.least, min(self.most, most))
        return Knob(tuple(dict.fromkeys(min(value, most) for value in self.start)), self.least, most)


Setting = dict[str, int]


def beyond(knob: Knob, rates: Mapping[int, float]) -> int | None:
    """The value to try next if the best is at an end of those tried; None if it is inside, or at a bound."""
    best = max(rates, key=rates.__getitem__)
    if best == max(rates) and best < knob.most:
        return min(max(1, 2 * best), knob.most)
    if best == min(rates) and best > knob.least:
        return max(best // 2, knob.least)
    return None


def sweep(knobs: Mapping[str, Knob], rate_of: Callable[[Setting], float], say: Callable[[str], None]) -> Setting:
    """The fastest setting: each knob's best while the later ones have their first value and the earlier their best."""
    setting = {name: knob.start[0] for name, knob in knobs.items()}
    for name, knob in knobs.items():
        rates = {value: rate_of({**setting, name: value}) for value in knob.start}
        while (value := beyond(knob, rates)) is not None:
            rates[value] = rate_of({**setting, name: value})
        setting[name] = max(rates, key=rates.__getitem__)
        told = {value: round(rates[value], 1) for value in sorted(rates)}
        at_bound = " (its bound)" if setting[name] in (knob.least, knob.most) else ""
        say(f"{name}: {told}, best at {setting[name]}{at_bound}")
    return setting
