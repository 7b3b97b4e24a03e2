"""The data of a loader, as it was opened: its dataset, and the engine's loader of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Protocol, Union

from leat import _log, _native
from leat._dataset import Dataset, Source
from leat._formats import _indexed, _parquet
from leat._formats._litdata import _index as _litdata
from leat._formats._mds import _index as _mds
from leat._orders._chosen import Order
from leat._orders._mix import Mix
from leat._say import shown
from leat._storage import StorageOptions, checked_storage, native_storage
from leat.errors import InvalidArgument

# A name in the place of a long type, so that help() stays short.
Places = Union[Source, Sequence[Source], Dataset]

NOT_YET = "its shards are being indexed by the first epoch (`leat index` does it before)"


class Follower(Protocol):
    """Holds the engine's loader too."""

    _native: Any


def dataset_of(
    source: Places, order: Order, wanted: frozenset[str] | None, storage_options: StorageOptions | None
) -> Dataset | None:
    """The dataset; None of a stream of shards, which may have no index yet."""
    if isinstance(source, Dataset):
        if storage_options is not None:
            raise InvalidArgument(
                "storage_options= beside a leat.Dataset, which is open already; give them to "
                "leat.Dataset"
            )
        return source
    if order.shuffle == "stream" and _parquet.may_be_shards(source):
        return None
    return Dataset._of_source(source, wanted, storage_options)


class Opened:
    """A dataset and the engine's loader of it. A state may replace both.

    Args:
        source: as for `leat.Loader`.
        dataset: of `dataset_of`.
        options: for the engine.
        storage_options: for a source that is no dataset yet.
    """

    def __init__(
        self, source: Places, dataset: Dataset | None, options: dict[str, Any], storage_options: StorageOptions | None
    ) -> None:
        self.options = options
        self._is_batch_of_rank = bool(options["batch_size"])
        self._dataset = dataset
        self._followers: list[Follower] = []
        if dataset is not None:
            self.native = _native.Loader(dataset._native, options)
            self.url, self.digest = dataset.url, dataset.digest
            return
        self.url = os.fspath(source)  # type: ignore[arg-type]
        storage = native_storage(checked_storage(storage_options))
        self.native = _native.Loader.of_url(self.url, storage, "auto", options)
        _parquet.check_no_rows(self.native.dataset(), self.url)
        for family in (_mds.FAMILY, _litdata.FAMILY):
            _indexed.check_none(self.native.dataset(), self.url, family)
        # Shards that one rank has to index, another may have a catalogue of.
        self.digest = self.state()["catalogue"]

    @property
    def dataset(self) -> Dataset:
        """Raises `InvalidArgument` while its shards are being indexed."""
        dataset = self.known_dataset()
        if dataset is None:
            raise InvalidArgument(f"the samples are not known yet; {NOT_YET}")
        return dataset

    def known_dataset(self) -> Dataset | None:
        """None while shards have yet to be indexed."""
        if self._dataset is None and (native := self.native.dataset()) is not None:
            self._dataset = Dataset._of(native)
        return self._dataset

    @property
    def classes(self) -> list[str]:
        """Those that were known before the first epoch."""
        return [] if self._dataset is None else self._dataset.classes

    @property
    def dtypes(self) -> Any:
        """The types of fields whose bytes are rows of numbers."""
        return {} if self._dataset is None else self._dataset._dtypes

    def versions(self) -> str | None:
        """Identifies the versions of the objects as they were listed; None where nobody knows them."""
        return None if self._dataset is None else self._dataset._native.versions

    def state(self) -> dict[str, Any]:
        """The delivered position, and what it belongs to."""
        state = json.loads(self.native.state())
        if isinstance(self._dataset, Mix):
            state["data"] = self._dataset.data()
        return state

    def follow(self, follower: Follower | None) -> None:
        """Tells it when the engine's loader is another one."""
        if follower is not None:
            self._followers.append(follower)

    def go_on_in_another_mix(self, state: Any) -> bool:
        """Begins the mix where that of the state began; or, if that is another one, where its
        sources stopped, and returns True."""
        if not isinstance(self._dataset, Mix) or not isinstance(state, dict) or state.get("drawn_by") != "mix":
            return False
        if self.options["mix"] is None:
            return False  # Its documents are packed.
        options, stood = dict(self.options), self.native.state()
        try:
            self._take_over_what_nobody_gave(self._dataset, state)
            begin, is_another = self._dataset.begin_of(state, self.state())
        except BaseException as error:
            if self.options != options:
                self.options.update(options)
                self._reopen(self._dataset)
                self.native.load_state(stood)
            if isinstance(error, (KeyError, TypeError)):
                return False  # The engine says what is missing.
            raise
        order = self._dataset.order_of(begin)
        if order != self.options["mix"] or is_another:
            self.options["mix"] = order
            self._reopen(self._dataset)
        if is_another:
            _log.logger.info(
                "%s: the state is of another mix: each source goes on where it stopped, and epoch %d begins with "
                "this one's sources and weights",
                shown(self._dataset.url), begin.epoch,
            )  # fmt: skip
        return is_another

    def _take_over_what_nobody_gave(self, mix: Mix, state: dict[str, Any]) -> None:
        """Takes the window of the state, and the size of its steps where the mix depends on it."""
        mine, options, before = self.state(), self.options, dict(self.options)
        window, size = state["shuffle_window"], state["global_batch_size"]
        in_blocks = mine["source_shuffle"] == state.get("source_shuffle") == "block"
        if in_blocks and options["shuffle_window"] is None and window != mine["shuffle_window"]:
            options["shuffle_window"] = window
        if mix.is_by_steps and self._is_batch_of_rank and size != mine["global_batch_size"]:
            options.update(batch_size=0, global_batch_size=size)
        if options != before:
            self._reopen(mix)

    def fit_to_catalogue(self, state: Any) -> Any:
        """The state, for the catalogue that is there; or that, for the state."""
        wanted = state.get("catalogue") if isinstance(state, dict) else None
        dataset = self._dataset
        if dataset is None or not isinstance(wanted, str) or wanted == dataset.digest:
            return state
        native = dataset._native.earlier(wanted)
        if native is None:
            return state  # The loaded state says what differs.
        if state.get("position") == 0:
            _check_labels(native.classes, dataset, state)
            return {**state, "catalogue": dataset.digest, "samples": len(dataset)}
        self._reopen(Dataset._of(native, dataset._dtypes))
        _log.logger.warning(
            "%s: the epoch goes on with the catalogue that it began with, of %d samples, and so "
            "does this loader; what has changed since is seen when one starts between two epochs",
            self.dataset.url, len(self.dataset),
        )  # fmt: skip
        return state

    def _reopen(self, dataset: Dataset) -> None:
        """Another engine's loader, by the options as they are now."""
        self._dataset = dataset
        self.native.close()
        self.native = _native.Loader(dataset._native, self.options)
        for follower in self._followers:
            follower._native = self.native


def _check_labels(former: list[str], dataset: Dataset, state: dict[str, Any]) -> None:
    """Raises `InvalidArgument` if a model that was trained up to the state knows other labels."""
    if changes := _native.label_changes(former, dataset.classes):
        raise InvalidArgument(
            f"{shown(dataset.url)}: since this state was saved, the classes have changed: {changes}. "
            f"To train on with the labels of now, call set_epoch({state.get('epoch')}) in place of "
            "load_state_dict()"
        )
