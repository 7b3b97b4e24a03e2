"""The delivered part of an epoch, and the facts needed to go on from there.

Samplers and generators run ahead of the delivered batches, by the lookahead. So
a state never holds their present values. It holds the generators as they were
when the epoch began, from which the sampler's draws are repeated; or, for a
sampler that offers ``state_dict``, its state just after it drew the last batch
delivered.
"""

from __future__ import annotations

import base64
import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Sampler

from leat.errors import InvalidArgument

VERSION = 1


class Position:
    """The position of a loader in its running epoch.

    Threads: those that iterate; one at a time.
    """

    def __init__(self, loader: Any, resumed: dict[str, Any] | None = None) -> None:
        self._sampler = stateful_sampler(loader)
        self._drawn: deque[Any] = deque()  # Sampler's states after draws not delivered.
        self._beyond: set[int] = set()  # Delivered although an earlier one is not.
        self.is_over = False
        self.base_seed: int | None = None
        self.iterated = 0
        self.delivered = 0
        if resumed is None:
            self.begin(generators_of(loader), seed_follows=True)
            self._sampler_state = self._ask_sampler()
        else:
            self.delivered = resumed["delivered"]
            self._beyond = set(resumed["beyond"])
            self._generators = resumed["generators"]
            self._seed_follows = resumed["seed_follows"]
            self._sampler_state = resumed["sampler"]

    def begin(self, generators: dict[str, torch.Generator], *, seed_follows: bool) -> None:
        """The loader is about to ask the sampler for the epoch's order.

        `seed_follows` says that the workers' seed is drawn after asking and before
        the first batch, as torch does without workers.
        """
        self._generators = states_of(generators)
        self._seed_follows = seed_follows

    def drew(self) -> None:
        """The sampler has drawn the next batch."""
        if self._sampler is not None:
            self._drawn.append(self._ask_sampler())

    def deliver(self, number: int) -> None:
        """Batch `number` of this epoch was returned, or its error raised."""
        self._beyond.add(number)
        while self.delivered in self._beyond:
            self._beyond.remove(self.delivered)
            self.delivered += 1
            if self._drawn:
                self._sampler_state = self._drawn.popleft()

    def is_delivered(self, number: int) -> bool:
        """Whether a batch must not come again."""
        return number < self.delivered or number in self._beyond

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values, if the sampler's own state consists of such
        values."""
        return {
            "delivered": self.delivered,
            "beyond": sorted(self._beyond),
            "base_seed": self.base_seed,
            "iterated": self.iterated,
            "generators": self._generators,
            "seed_follows": self._seed_follows,
            "sampler": self._sampler_state,
        }

    def _ask_sampler(self) -> Any:
        return None if self._sampler is None else self._sampler.state_dict()


def between_epochs(loader: Any) -> dict[str, Any]:
    """As `Position.to_dict` when no epoch is running: the next one starts anew.

    torch's global generator is the caller's to save; those given to the loader or
    its samplers are ours. Workers that live on keep their seed, and no other is
    drawn for the next epoch.
    """
    generators = generators_of(loader)
    del generators["torch"]
    sampler = stateful_sampler(loader)
    lives_on = loader.persistent_workers and loader._iterator is not None and loader._position is not None
    return {
        "delivered": None,
        "beyond": [],
        "base_seed": loader._position.base_seed if lives_on else None,
        "iterated": loader._position.iterated + 1 if lives_on else 0,
        "generators": states_of(generators),
        "seed_follows": False,
        "sampler": None if sampler is None else sampler.state_dict(),
    }


def stateful_sampler(loader: Any) -> Any:
    """The batch sampler or the sampler, if it can save and load its state."""
    for sampler in (loader.batch_sampler, loader.sampler):
        if is_stateful(sampler):
            return sampler
    return None


def is_stateful(thing: Any) -> bool:
    """Whether it offers ``state_dict`` and ``load_state_dict``."""
    return hasattr(thing, "state_dict") and hasattr(thing, "load_state_dict")


def samplers_of(loader: Any) -> list[tuple[str, Any]]:
    """The loader's samplers, and those within them, each with a name that says where it is."""
    found: dict[int, tuple[str, Any]] = {}

    def add(name: str, sampler: Any) -> None:
        if id(sampler) in found:
            return
        found[id(sampler)] = name, sampler
        for attribute, held in sorted(getattr(sampler, "__dict__", {}).items()):
            if isinstance(held, Sampler) or attribute in ("sampler", "batch_sampler"):
                add(f"{name}.{attribute}", held)

    add("sampler", loader.sampler)
    add("batch_sampler", loader.batch_sampler)
    return list(found.values())


def generators_of(loader: Any) -> dict[str, torch.Generator]:
    """torch's global generator, and the generators that the loader and its samplers were given."""
    found = {"torch": torch.default_generator}
    for name, owner in (("loader", loader), *samplers_of(loader)):
        generator = getattr(owner, "generator", None)
        if isinstance(generator, torch.Generator):
            found[name] = generator
    for name, sampler in samplers_of(loader):
        for attribute, held in sorted(getattr(sampler, "__dict__", {}).items()):
            if isinstance(held, torch.Generator) and attribute != "generator":
                found[f"{name}.{attribute}"] = held
    return found


def states_of(generators: dict[str, torch.Generator]) -> dict[str, str]:
    """The states of generators, as text."""
    return {
        name: base64.b64encode(generator.get_state().numpy().tobytes()).decode()
        for name, generator in generators.items()
    }


def set_states(generators: dict[str, torch.Generator], states: dict[str, str]) -> None:
    """Puts generators back; those that are not in `states` stay."""
    for name, generator in generators.items():
        if name in states:
            state = bytearray(base64.b64decode(states[name]))
            generator.set_state(torch.frombuffer(state, dtype=torch.uint8))


@contextlib.contextmanager
def kept_global_generator() -> Iterator[None]:
    """Draws within it leave no trace in torch's global generator."""
    before = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(before)


def check(state: Any, settings: dict[str, Any]) -> None:
    """Raises an error unless this is a state of a loader with these settings.

    Raises:
        leat.InvalidArgument: it is not such a state, or is of other data or batches.
    """
    version = state.get("leat_dataloader") if isinstance(state, dict) else None
    if version != VERSION:
        raise InvalidArgument(
            f"the state is of version {version!r} and this leat.torch.DataLoader reads "
            f"version {VERSION}: give what its state_dict() returned"
        )
    for name, value in settings.items():
        if state.get(name) != value:
            raise InvalidArgument(
                f"the state has {name}={state.get(name)!r} and this loader {value!r}: it "
                "counts batches, so make the loader as it was when the state was saved"
            )
