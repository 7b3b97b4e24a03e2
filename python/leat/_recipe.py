"""The recipe of a dataset, by which another process can make it again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from leat.errors import InvalidArgument

if TYPE_CHECKING:
    from leat._dataset import Dataset


@dataclass(frozen=True)
class Recipe:
    """How a dataset was made. Holds names and numbers: no credentials, no mapping."""

    how: str
    """``open``, ``from_manifest``, ``parquet``, ``tokens``, ``megatron``, ``mds``, ``litdata``, ``array``,
    ``audio``, ``video``, ``select``, ``concat`` or ``mix``."""
    what: tuple[Any, ...]
    """The arguments of that: places, or the recipes of other datasets."""
    options: dict[str, Any]
    digest: str
    """The digest of the dataset that it made."""


def place_anywhere(place: Any) -> Any:
    """A place, or a list of them, as text that means the same in any folder."""
    if not isinstance(place, (str, os.PathLike)):
        return [place_anywhere(each) for each in place]
    text = os.fspath(place)
    return text if "://" in text else os.path.abspath(text) + ("/" if text.endswith("/") else "")


def options_said(**options: Any) -> dict[str, Any]:
    """Those that differ from their defaults."""
    return {
        name: value
        for name, value in options.items()
        if value is not None and value is not False and value not in ((), "")
    }


def samples_said(samples: np.ndarray) -> Union[range, np.ndarray]:
    """Sample numbers, as few bytes as they take."""
    if len(samples) > 1:
        step = int(samples[1]) - int(samples[0])
        if step != 0 and np.all(np.diff(samples) == step):
            return range(int(samples[0]), int(samples[-1]) + (1 if step > 0 else -1), step)
    return samples.astype(np.min_scalar_type(int(samples.max(initial=0))))


def selection(parent: Recipe | None, samples: np.ndarray, digest: str) -> Recipe | None:
    """The samples of `parent` with these numbers; for a selection of a selection,
    of its own source."""
    if parent is None:
        return None
    if parent.how == "select":
        before = parent.what[1]
        samples = np.asarray(before)[samples]
        parent = parent.what[0]
    return Recipe("select", (parent, samples_said(samples)), {}, digest)


def make_again(recipe: Recipe) -> Dataset:
    """The dataset once more.

    Raises:
        leat.InvalidArgument: what lies there now is other data.
    """
    from leat._dataset import Dataset

    if recipe.how == "select":
        parent, samples = recipe.what
        made = make_again(parent).select(np.asarray(samples, dtype=np.int64))
    elif recipe.how == "concat":
        made = Dataset.concat([make_again(each) for each in recipe.what])
    elif recipe.how == "mix":
        from leat._orders import _mix

        made = _mix.make_again([make_again(each) for each in recipe.what], recipe.options)
    else:
        make = Dataset if recipe.how == "open" else getattr(Dataset, recipe.how)
        made = make(*recipe.what, refresh="never", **recipe.options)
    if made.digest != recipe.digest:
        raise InvalidArgument(
            f"{made.url} is other data than when this dataset was pickled: it was opened "
            f"again, and has the digest {made.digest} instead of {recipe.digest}. Open it "
            "once more in the first process, with refresh=\"always\", and pickle that; "
            "between machines, publish its catalogue (`leat index --publish`)"
        )
    return made
