"""A page of samples, to look at before a training: `leat.show`."""

from __future__ import annotations

import html
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from leat._arguments import checks_names, count as _count
from leat._dataset import Dataset, Source
from leat._show import _html, _samples
from leat._show._parts import Decode, Roles, of_values
from leat._storage import StorageOptions
from leat.errors import Error, InvalidArgument
from leat.ops import Op, listed

if TYPE_CHECKING:
    from leat._loader import Loader

Chains = Union[Sequence[Op], Mapping[str, Sequence[Op]]]

_MOST_SAMPLES = 1000
_MOST_EPOCHS = 8


class Page:
    """A page of samples: one HTML file that needs nothing else. A notebook shows it.

    Attributes:
        html: the page.
        samples: how many samples are on it.
    """

    def __init__(self, text: str, samples: int) -> None:
        self.html = text
        self.samples = samples

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the file, and returns its path."""
        place = pathlib.Path(path)
        try:
            _write(place, self.html)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(place)) from error
        return place

    def _repr_html_(self) -> str:
        """In a frame of its own, which may run nothing."""
        inner = html.escape(self.html, quote=True)
        return f'<iframe sandbox srcdoc="{inner}" style="width: 100%; height: 42rem; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<leat.show: {self.samples} samples, {len(self.html):,} bytes of HTML>"


def _write(place: pathlib.Path, text: str) -> None:
    """Whole or not at all; but a link, a pipe or a device stays what it is."""
    if place.is_symlink() or (place.exists() and not place.is_file()):
        place.write_text(text, encoding="utf-8")
        return
    draft = place.with_name(f"{place.name}.part-{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, place)
    finally:
        draft.unlink(missing_ok=True)


@checks_names()
def show(
    source: Source | Sequence[Source] | Dataset | Loader,
    *,
    ops: Chains = (),
    count: int = 24,
    by: str | None = "auto",
    samples: Sequence[int] | None = None,
    seed: int = 0,
    epochs: int = 1,
    decode: Decode = None,
    storage_options: StorageOptions | None = None,
) -> Page:
    """A page of samples of a dataset, as they are stored and as ops make them.

        leat.show("s3://bucket/photos", ops=ops).save("photos.html")

    Pictures come as thumbnails, with their masks, boxes and points drawn over them; sound and
    films can be played; texts, arrays and tokens are printed.

    Args:
        source: a URL, a path, a list of these, a `leat.Dataset`, a mix, or a `leat.Loader`,
            whose next batch is then shown; its position does not move.
        ops: the ops of a loader. Each sample is shown as it is stored, and beside that as a
            loader with this seed delivers it. A dict of name to ops shows several chains.
        count: about how many samples.
        by: the field whose values are groups, with about as many samples each: "auto" takes
            a mix's sources, or classes; None makes no groups.
        samples: the numbers of the samples to show, in place of a choice.
        seed: decides which samples are shown, and with the epoch what random ops draw: the
            draws are those of a training with this seed.
        epochs: the draws of this many epochs are shown side by side.
        decode: a function from a sample's tokens, or from its bytes that are no picture, to a
            text, such as a tokenizer's ``decode``.
        storage_options: as for `leat.Dataset`.

    Raises:
        leat.InvalidArgument: an argument that cannot be; or a loader with ``collate=``.
    """
    from leat._loader import Loader

    if isinstance(source, Loader):
        return _of_loader(source, decode)
    if not isinstance(source, Dataset):
        source = Dataset(source, storage_options=storage_options)
    elif storage_options is not None:
        raise InvalidArgument("storage_options= beside a leat.Dataset, which is open already")
    count = _limited("count", count, _MOST_SAMPLES)
    epochs = _limited("epochs", epochs, _MOST_EPOCHS)
    seed = _count("seed", seed)
    if decode is not None and not callable(decode):
        raise InvalidArgument(f"decode={decode!r}; it is a function")
    dataset, sources = _samples.plain(source)
    groups, field, left_out = _samples.groups_of(dataset, by, sources, count, seed, samples)
    chosen = [number for group in groups for number in group.samples]
    versions = _versions_of(ops, epochs)
    cards = _cards_of(dataset, chosen, versions, seed, decode, sources)
    head = _html.Head(
        title=source.url, facts=_facts_of(source), by=field, left_out=left_out,
        versions=[version.name for version in versions], seed=seed,
    )  # fmt: skip
    return Page(_html.page(head, groups, dict(zip(chosen, cards))), len(chosen))


def _limited(name: str, value: int, most: int) -> int:
    value = _count(name, value, at_least=1)
    if value > most:
        raise InvalidArgument(f"{name}={value}: a page has at most {most}")
    return value


def _versions_of(ops: Chains, epochs: int) -> list[_samples.Version]:
    """As stored, and for each chain its draws of some epochs."""
    if not ops:
        return []
    chains = dict(ops) if isinstance(ops, Mapping) else {"": ops}
    versions = []
    stored: Sequence[Op] | None = None
    for name, chain in chains.items():
        chain = listed(chain)
        if stored is None:
            stored = _samples.opening(chain)
            versions.append(_samples.Version("as stored", stored, 0))
        for epoch in range(epochs):
            of_epoch = f"epoch {epoch}" if epochs > 1 else "" if name else "with these ops"
            versions.append(_samples.Version(", ".join(filter(None, (name, of_epoch))), chain, epoch))
    return versions


def _cards_of(
    dataset: Dataset, chosen: Sequence[int], versions: Sequence[_samples.Version], seed: int,
    decode: Decode, sources: Sequence[str],
) -> list[_html.Card]:  # fmt: skip
    """All that is shown of each sample."""
    cards = [_html.Card(dataset.key(number), number) for number in chosen]
    if not versions:
        for card, values in zip(cards, _samples.stored(dataset, chosen)):
            _add(card, "", values, Roles(), decode, dataset, sources)
    for version in versions:
        roles = _samples.roles_of(version.ops)
        for card, values in zip(cards, _samples.made(dataset, chosen, version, seed)):
            _add(card, version.name, values, roles, decode, dataset, sources)
    return cards


def _add(
    card: _html.Card, name: str, values: Mapping[str, Any] | Error, roles: Roles, decode: Decode,
    dataset: Dataset, sources: Sequence[str],
) -> None:  # fmt: skip
    if isinstance(values, Error):
        card.versions.append(_html.Version(name, [], str(values)))
        return
    shown = {field: value for field, value in values.items() if field not in ("index", "key", "valid")}
    for field, names in (("label", dataset.classes), ("source", list(sources))):
        if field in shown and names and (number := _whole(shown[field])) is not None and 0 <= number < len(names):
            shown[field] = names[number]
    parts, _ = of_values(shown, roles, decode)
    card.versions.append(_html.Version(name, parts))


def _whole(value: Any) -> int | None:
    return int(value) if getattr(value, "ndim", 0) == 0 and hasattr(value, "__index__") else None


def _facts_of(dataset: Dataset) -> list[tuple[str, str]]:
    kinds = ", ".join(
        f"{name}: {dataset._dtypes[name].dtype.name if name in dataset._dtypes else kind}"
        for name, kind in dataset.fields.items()
    )
    facts = [("Samples", f"{len(dataset):,}"), ("Bytes", f"{dataset.nbytes:,}"), ("Fields", kinds)]
    if dataset.classes:
        facts.insert(1, ("Classes", f"{len(dataset.classes):,}"))
    return facts


def _of_loader(loader: Loader, decode: Decode) -> Page:
    """The next batch."""
    delivery = loader._delivery
    if delivery.collates:
        raise InvalidArgument(
            "leat.show: the loader has collate=, whose batches have no fields; show its dataset with ops="
        )
    batch = loader.peek()
    if batch is None:
        raise InvalidArgument("leat.show: the loader's epoch is over; call set_epoch()")
    given = delivery._names._others
    if isinstance(batch, tuple):
        names = delivery.names(loader._native.field_names)
        if len(names) != len(batch):
            there = "is 1 field" if len(names) == 1 else f"are {len(names)} fields"
            raise InvalidArgument(
                f"leat.show: a function made the batch a tuple of {len(batch)} values, and there {there}; show the "
                "dataset with ops="
            )
        batch = dict(zip(names, batch))
    if not isinstance(batch, Mapping):
        raise InvalidArgument(
            f"leat.show: a function made the batch a {type(batch).__name__}; show the dataset with ops="
        )
    roles = _samples.roles_of(delivery.ops, given)
    dataset = loader.dataset
    cards = []
    for row, values in enumerate(_samples.rows_of(batch)):
        number = _whole(values.get("index"))
        card = _html.Card(str(values.get("key", "" if number is None else dataset.key(number))), number)
        _add(card, "", values, roles, decode, dataset, getattr(dataset, "sources", []))
        cards.append(card)
    group = _samples.Group("", len(cards), range(len(cards)))
    state = loader.state_dict()
    head = _html.Head(
        title=dataset.url, facts=[*_facts_of(dataset), ("Batch", f"the next one, of epoch {state['epoch']}")],
        by=None, left_out=0, versions=[], seed=state["seed"],
    )  # fmt: skip
    return Page(_html.page(head, [group], dict(enumerate(cards))), len(cards))
