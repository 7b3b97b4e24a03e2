"""Mixes: one stream of several datasets, by weight."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from leat import _native
from leat._arguments import checks_names
from leat._dataset import Dataset, fields_in_words, say_if_merged
from leat._recipe import Recipe, options_said
from leat.errors import InvalidArgument

Stop = Literal["first_exhausted", "all_exhausted", "all_exhausted_without_replacement"]
Composition = Literal["random", "stratified", "per_source"]
Sources = Mapping[str, Union[Dataset, "tuple[Dataset, float]"]]

_STOPS = ("first_exhausted", "all_exhausted", "all_exhausted_without_replacement")
_COMPOSITIONS = ("random", "stratified", "per_source")
_FIELD = "source"
_MOST_NAMES = 3
"""That a message lists of many."""
_log = logging.getLogger("leat")


class Source(NamedTuple):
    """A dataset of a mix."""

    name: str
    dataset: Dataset
    weight: float
    wanted: int
    """Samples of an epoch, if they are counted; else 0."""
    outer: str
    """Its name, or that of the mix that it came with,"""
    share: float
    """and its share of the weight of that."""


class Mix(Dataset):
    """A `leat.Dataset` whose samples come by turns of its sources: see `leat.mix`."""

    def _set_mix(self, sources: Sequence[Source], order: dict[str, Any]) -> None:
        self._mixed = list(sources)
        self._order = order

    @property
    def sources(self) -> list[str]:
        """The names of the sources; the field ``source`` of a sample is a number of these."""
        return [source.name for source in self._mixed]

    @property
    def weights(self) -> dict[str, float]:
        """The share of each source, as long as none has ended: they add up to 1."""
        total = math.fsum(source.weight for source in self._mixed)
        return {source.name: source.weight / total for source in self._mixed}

    def select(self, samples: Sequence[int] | np.ndarray) -> Dataset:
        """Raises an error: choose the samples of a source before you mix it."""
        raise InvalidArgument(
            "the samples of a mix come by turns of its sources; take, filter or split a source "
            "before you mix it, or join datasets with leat.Dataset.concat"
        )

    def __repr__(self) -> str:
        shares = ", ".join(f"{name}: {share:.3g}" for name, share in self.weights.items())
        return f"leat.mix({{{shares}}}, {self._order['composition']}, {len(self)} samples)"

    def order_of(self, begin: Begin) -> dict[str, Any]:
        """The mix, for the engine."""
        return {
            **self._order,
            "sources": [
                (source.name, len(source.dataset), source.weight, source.wanted, begin.had.get(source.name, 0))
                for source in self._mixed
            ],
            "first_epoch": begin.epoch,
        }

    @property
    def is_by_steps(self) -> bool:
        """Whether the order depends on the size of steps."""
        return self._order["composition"] == "per_source"

    def check_rows(self, sampler: str) -> None:
        """Raises `InvalidArgument` if its steps cannot have the rows of a sampler."""
        if self.is_by_steps:
            raise InvalidArgument(
                f'composition="per_source" gives whole steps to a source, and {sampler} makes rows or micro-batches of '
                'samples of all sources; give leat.mix "random" or "stratified"'
            )

    def data(self) -> str:
        """Four characters for each source that tell its data from other data."""
        return "".join(source.dataset.digest[:4] for source in self._mixed)

    def begin_of(self, state: dict[str, Any], mine: dict[str, Any]) -> tuple[Begin, bool]:
        """Finds the begin of a state's mix; or, if that was another mix, the begin of this one.

        Returns:
            That, and whether it was another mix.

        Raises:
            leat.InvalidArgument: a source has other data now, or an order of its own that differs.
        """
        names = state["sources"]
        is_another = state["drawn"] != mine["drawn"]
        given = [("source_shuffle", "shuffle=")]
        if is_another:
            given += [("seed", "seed="), ("shuffle_window", "window= of the shuffle")]
        for what, option in given:
            theirs = state.get(what, mine[what]) if what == "source_shuffle" else state[what]
            if theirs != mine[what]:
                raise InvalidArgument(
                    f"the state was saved with {what} {theirs}, but this loader has {mine[what]}: the order of "
                    f"each source would differ, and samples would be lost or come twice; give the same {option}"
                )
        if not is_another:
            return Begin(state.get("first_epoch", 0), dict(zip(names, state.get("begin", [])))), False
        data = state.get("data", "")
        for number, name in enumerate(names):
            for source in self._mixed:
                if source.name == name and source.dataset.digest[:4] != data[4 * number : 4 * number + 4]:
                    raise InvalidArgument(
                        f"source {name!r} has other data than when the state was saved, so nobody knows which of "
                        "its samples have come; open it with the catalogue that it had, or give it another name, "
                        "and it begins anew"
                    )
        return Begin(state["epoch"], dict(zip(names, state["had"]))), True


class Begin(NamedTuple):
    """The begin of a mixed stream."""

    epoch: int = 0
    had: Mapping[str, int] = {}
    """By source: the samples that came before."""


@checks_names()
def mix(
    sources: Sources,
    *,
    stop: Stop | None = None,
    composition: Composition = "random",
    samples: int | None = None,
    schedule: Mapping[int, Mapping[str, float]] | None = None,
    ramp: bool = False,
    repeat: Mapping[str, float] | None = None,
    choose: Mapping[str, int] | None = None,
) -> Mix:
    """One stream of several datasets, whose samples come by turns.

        books, code = leat.Dataset("s3://bucket/books"), leat.Dataset("s3://bucket/code")
        both = leat.mix({"books": (books, 0.75), "code": (code, 0.25)})
        loader = leat.Loader(both, batch_size=64, train=True)

    A loader shuffles each source by itself, reads all of them with one set of threads and
    one budget of memory, and resumes at any world size. A source goes on where it stopped,
    in the next epoch too: no sample comes again before all of its source have come. Each
    sample has a field ``source``, the number of its source.

    A state of a loader may be loaded into a loader of another mix: with other weights, with
    more or fewer sources. Each source then goes on where it stopped.

    Args:
        sources: from a name to a dataset and its weight. Weights are relative. Datasets
            without weights come in proportion to their samples, each sample once an epoch.
            A mix may be a source: its sources have its weight together, by their shares.
        stop: the end of an epoch. ``"first_exhausted"``: as soon as one source has come
            once. ``"all_exhausted"``, the default with weights: as soon as all have; those
            that end earlier begin anew. ``"all_exhausted_without_replacement"``: each
            sample comes once, and the sources that are left share the turns of those that
            are through.
        composition: ``"random"`` draws the order of turns. ``"stratified"`` spreads turns
            as evenly as can be: after any number of samples, each source has had its share
            to less than one sample. ``"per_source"`` draws a source for each step.
        samples: the samples of an epoch, in place of `stop`.
        schedule: from a number of samples to the weights that hold from there on, by name:
            ``{1_000_000: {"books": 0.2, "code": 0.8}}``. It counts the samples of the
            stream over all epochs, from 0 on where a loader begins or goes on in another
            mix.
        ramp: True moves weights evenly from each point of the schedule to the next, in 64
            stages; False changes them there at once.
        repeat: from a name to how often that source comes in an epoch, such as 2 or 0.5; 1
            for sources that it does not name. In place of weights.
        choose: from each name to the samples of that source in an epoch. In place of
            weights.

    Raises:
        leat.InvalidArgument: weights, `repeat` and `choose` together; a value that cannot be
            meant; or sources whose fields differ, which it names.
    """
    parts = _parts_of(sources)
    has_weights = parts[0].weight >= 0
    counted = [what for what in (repeat, choose) if what is not None]
    if len(counted) + has_weights > 1:
        raise InvalidArgument("weights, repeat= and choose= each say how much of a source comes; give one of them")
    if counted and (stop is not None or samples is not None):
        raise InvalidArgument("repeat= and choose= say when an epoch ends; leave stop= and samples= out")
    if samples is not None and stop is not None:
        raise InvalidArgument("samples= and stop= both say when an epoch ends; give one of them")
    if schedule is not None and not has_weights:
        raise InvalidArgument("schedule= changes weights, and the sources have none; give each a weight to begin with")
    if ramp and schedule is None:
        raise InvalidArgument("ramp=True moves weights from one point of schedule= to the next, and there is none")
    if composition not in _COMPOSITIONS:
        raise InvalidArgument(f"composition={composition!r}; it is {_either(_COMPOSITIONS)}")
    for name, value in sources.items():
        inner = value[0] if isinstance(value, tuple) else value
        if isinstance(inner, Mix) and inner._order["composition"] not in ("random", composition):
            raise InvalidArgument(
                f'mix: source {name!r} is a mix with composition="{inner._order["composition"]}", and this one has '
                f'"{composition}", which decides for the sources of both: give the same to both'
            )
    if repeat is not None or choose is not None:
        parts = _counted(parts, repeat, choose)
    elif not has_weights:
        parts = [part._replace(weight=float(len(part.dataset))) for part in parts]
    if stop is None:
        stop = "all_exhausted" if has_weights else "all_exhausted_without_replacement"
    if stop not in _STOPS:
        raise InvalidArgument(f"stop={stop!r}; it is {_either(_STOPS)}")
    if samples is not None and (isinstance(samples, bool) or samples < 1):
        raise InvalidArgument(f"samples={samples!r}; it is a whole number from 1 on")
    said = options_said(
        stop=stop if has_weights and samples is None else None,
        composition=composition,
        samples=samples,
        schedule=None if schedule is None else {first: dict(weights) for first, weights in schedule.items()},
        ramp=ramp,
        repeat=None if repeat is None else dict(repeat),
        choose=None if choose is None else dict(choose),
        weights=[part.weight for part in parts] if has_weights else None,
        names=[part.name for part in parts],
    )
    if not any(part.weight > 0 for part in parts):
        raise InvalidArgument("mix: no source has a weight above 0, so that no sample comes; give one to a source")
    order = {
        "stop": stop,
        "composition": composition,
        "samples_per_epoch": samples or 0,
        "schedule": [] if schedule is None else _scheduled(parts, schedule),
        "ramp": bool(ramp),
    }
    return _joined(parts, order, said)


def make_again(recipes: Sequence[Dataset], options: dict[str, Any]) -> Mix:
    """A mix from what its recipe says."""
    given = dict(options)
    names, weights = given.pop("names"), given.pop("weights", None)
    parts: Any = recipes if weights is None else list(zip(recipes, weights))
    return mix(dict(zip(names, parts)), **given)


def _parts_of(sources: Sources) -> list[Source]:
    """The sources of all mixes in it. A weight below 0: none was given."""
    if not isinstance(sources, Mapping) or not sources:
        raise InvalidArgument(f'mix({sources!r}): give a dict, such as {{"books": (books, 0.7), "code": (code, 0.3)}}')
    parts: list[Source] = []
    for name, value in sources.items():
        dataset, weight = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"mix: {name!r} is no name of a source")
        if not isinstance(dataset, Dataset):
            raise InvalidArgument(
                f"mix: source {name!r} is {value!r}; give a leat.Dataset, or a tuple of one and its weight"
            )
        dataset._check_joins("leat.mix")
        if weight is not None and not (_is_number(weight) and 0 <= weight < math.inf):
            raise InvalidArgument(f"mix: source {name!r} has the weight {weight!r}; it is a number from 0 on")
        if not len(dataset):
            raise InvalidArgument(f"mix: source {name!r} has no samples; leave it out")
        inner = _inner_of(name, dataset)
        given = -1.0 if weight is None else float(weight)
        if weight is None and len(inner) > 1:
            raise InvalidArgument(f"mix: source {name!r} is a mix, and needs a weight: give a tuple of both")
        parts += [Source(part, each, given * share, 0, name, share) for part, each, share in inner]
    lacks = [part.name for part in parts if part.weight < 0]
    if lacks and len(lacks) < len(parts):
        raise InvalidArgument(f"mix: source {lacks[0]!r} has no weight, and others have one; give all of them one")
    return parts


def _inner_of(name: str, dataset: Dataset) -> list[tuple[str, Dataset, float]]:
    if not isinstance(dataset, Mix):
        return [(name, dataset, 1.0)]
    if any(source.wanted for source in dataset._mixed):
        raise InvalidArgument(
            f"mix: source {name!r} is a mix by repeat= or choose=, whose epochs have an end; give it weights, "
            "or name its sources in repeat= or choose= of this mix"
        )
    if dataset._order["schedule"]:
        raise InvalidArgument(
            f"mix: source {name!r} is a mix with schedule=, which counts the samples of its own epochs, and the epochs "
            "are those of this mix: give schedule= here, with the sources of that mix by name"
        )
    shares = dataset.weights
    return [(f"{name}/{source.name}", source.dataset, shares[source.name]) for source in dataset._mixed]


def _counted(
    parts: list[Source], repeat: Mapping[str, float] | None, choose: Mapping[str, int] | None
) -> list[Source]:
    option, given = ("repeat", repeat) if repeat is not None else ("choose", choose)
    assert given is not None
    names = [part.name for part in parts]
    if unknown := sorted(set(given) - set(names)):
        raise InvalidArgument(f"{option}= names {unknown[0]!r}, and the sources are {', '.join(names)}")
    counted = []
    for part in parts:
        value: Any = given.get(part.name, 1 if repeat is not None else None)
        if value is None:
            raise InvalidArgument(f"choose= has no number for source {part.name!r}; give one for each")
        if not _is_number(value) or not 0 <= value < math.inf or (choose is not None and value != int(value)):
            kind = "a number" if repeat is not None else "a whole number"
            raise InvalidArgument(f"{option}= has {value!r} for source {part.name!r}; it is {kind} from 0 on")
        wanted = round(value * len(part.dataset)) if repeat is not None else int(value)
        counted.append(part._replace(weight=float(wanted), wanted=wanted))
    return counted


def _scheduled(
    parts: list[Source], schedule: Mapping[int, Mapping[str, float]]
) -> list[tuple[int, list[float]]]:
    """The points, with a weight for each source."""
    if not isinstance(schedule, Mapping) or not schedule:
        raise InvalidArgument(f"schedule={schedule!r}; it is a dict, from a number of samples to weights by name")
    names = list(dict.fromkeys(part.outer for part in parts))
    points = []
    for first, weights in sorted(schedule.items()):
        if isinstance(first, bool) or not isinstance(first, (int, np.integer)) or first < 1:
            raise InvalidArgument(f"schedule= changes weights at {first!r}; it is a whole number of samples from 1 on")
        if not isinstance(weights, Mapping) or set(weights) != set(names):
            raise InvalidArgument(
                f"schedule= has {weights!r} from sample {first} on; give a weight for each of {', '.join(names)}"
            )
        for name, weight in weights.items():
            if not _is_number(weight) or not 0 <= weight < math.inf:
                raise InvalidArgument(f"schedule= has the weight {weight!r} for {name!r}; it is a number from 0 on")
        points.append((int(first), [float(weights[part.outer]) * part.share for part in parts]))
    return points


def _joined(parts: list[Source], order: dict[str, Any], said: dict[str, Any]) -> Mix:
    first = parts[0]
    for part in parts:
        if _FIELD in part.dataset.fields:
            raise InvalidArgument(
                f"source {part.name!r} has a field {_FIELD!r}, which is the number of a sample's source in a mix"
            )
        if dict(part.dataset.fields) != dict(first.dataset.fields) or part.dataset._dtypes != first.dataset._dtypes:
            raise InvalidArgument(
                f"source {part.name!r} has the fields {fields_in_words(part.dataset)}, and {first.name!r} has "
                f"{fields_in_words(first.dataset)}: a batch has samples of all sources, so names, kinds and shapes have to agree; "
                "fields= and columns= of from_manifest name the fields of a table"
            )
    _say_if_twice(parts)
    native = _native.Dataset.join([part.dataset._native for part in parts], _FIELD)
    say_if_merged("mix", [part.dataset for part in parts], native)
    recipes = [part.dataset._recipe for part in parts]
    recipe = None if None in recipes else Recipe("mix", tuple(recipes), said, native.digest)
    made = Mix._of(native, first.dataset._dtypes, recipe)
    assert isinstance(made, Mix)
    made._set_mix(parts, order)
    return made


def _say_if_twice(parts: Sequence[Source]) -> None:
    for names in _groups_of_same_data(parts):
        listed = ", ".join(repr(name) for name in names[:-1][:_MOST_NAMES])
        more = f" (and {len(names) - 1 - _MOST_NAMES} more)" if len(names) - 1 > _MOST_NAMES else ""
        _log.warning(
            "mix: the sources %s%s and %r are the same data, each in an order of its own, so a sample comes for "
            "%s; keep one of them, and give it the weights of all",
            listed, more, names[-1], "both" if len(names) == 2 else "each",
        )  # fmt: skip


def _groups_of_same_data(parts: Sequence[Source]) -> list[list[str]]:
    """The names of sources that are the same objects, or copies with the same ETags.

    Digests say only that names and sizes are equal, as shards of different data may be."""
    alike: dict[str, list[Source]] = {}
    for part in parts:
        alike.setdefault(part.dataset.digest, []).append(part)
    groups: dict[Any, list[str]] = {}
    for digest, several in alike.items():
        known: dict[Any, Any] = {}
        for part in several if len(several) > 1 else ():
            place = tuple(part.dataset._native.places)
            versions = part.dataset._native.versions if place not in known else None
            # Servers other than a bucket's may give files of one size and time the same ETag.
            is_told = versions is not None and part.dataset.url.startswith(("s3://", "gs://"))
            same = known.setdefault(place, known.get(versions, place) if is_told else place)
            if is_told:
                known.setdefault(versions, same)
            groups.setdefault((digest, same), []).append(part.name)
    return [names for names in groups.values() if len(names) > 1]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _either(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return ", ".join(quoted[:-1]) + " or " + quoted[-1]
