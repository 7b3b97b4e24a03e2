"""Some fifty loaders give the samples that they gave when order_hashes.json was written.

For each loader, the file has the order and content hash of two epochs and a half: the
second is left after a batch and resumed by another loader. A change of the file is a
change of the meaning of a seed. To write it anew: python
tests/python/test_order_hashes.py --record
"""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import sys
import tempfile

import pytest

import leat
from leat.ops import DecodeImage, Normalize, RandomHorizontalFlip, RandomResizedCrop
from small_datasets import make_pictures, make_shards

RECORD = pathlib.Path(__file__).with_name("order_hashes.json")
OPS = [DecodeImage(), RandomResizedCrop(8), RandomHorizontalFlip(), Normalize("imagenet")]
USUAL = {"global_batch_size": 18, "batch": "dict", "output": "numpy", "seed": 11, "epochs": 4}
WEIGHTS = [1.0 + number % 5 for number in range(60)]

ORDERS = {
    "pictures-in-order": ("pictures", {"ops": OPS, "shuffle": False, "drop_last": "pad"}),
    "pictures-full": ("pictures", {"ops": OPS, "shuffle": "full"}),
    "pictures-weights": ("pictures", {"ops": OPS, "sampler": leat.WeightedSampler(WEIGHTS)}),
    "shards-in-order": ("shards", {"shuffle": False, "drop_last": "pad"}),
    "shards-full": ("shards", {"shuffle": "full"}),
    "shards-block": ("shards", {"shuffle": leat.Shuffle("block", 2)}),
    "shards-stream": ("unindexed", {"shuffle": leat.Shuffle("stream", 2)}),
    "two-places": (["pictures", "more"], {"ops": OPS, "shuffle": True}),
}
"""Source and options of each; the source in the place of its name."""

CACHES = {
    "no-cache": None,
    "ram": {"ram": "4MiB"},
    "disk": {"disk": True, "disk_limit": "8MiB", "policy": "lru"},
}
RANKS = {"alone": {"rank": 0, "world_size": 1}, "second-of-three": {"rank": 1, "world_size": 3}}
_MORE_RANKS = {"rank": 2, "world_size": 3}
MORE = {
    "pictures-full/decoded/alone": ("pictures", {"ops": OPS, "shuffle": "full"}, {"ram": "4MiB", "form": "decoded"}),
    "pictures-full/tiers/third-of-three": (
        "pictures", {"ops": OPS, "shuffle": "full", **_MORE_RANKS}, {"ram": "64KiB", "disk": True, "disk_limit": "8MiB"}),
    "pictures-full/sticky/third-of-three": (
        "pictures", {"ops": OPS, "shuffle": "full", **_MORE_RANKS}, {"ram": "4MiB", "locality": "sticky"}),
    "pictures-full/balance/third-of-three": (
        "pictures", {"ops": OPS, "shuffle": "full", **_MORE_RANKS}, {"ram": "16KiB", "locality": "balance"}),
    "shards-block/remap/third-of-three": (
        "shards", {"shuffle": "block", **_MORE_RANKS}, {"ram": "1MiB", "locality": "remap"}),
    "served-shards/ram/alone": ("s3", {"shuffle": leat.Shuffle("block", 2)}, {"ram": "4MiB"}),
    "served-stream/no-cache/alone": ("s3-unindexed", {"shuffle": leat.Shuffle("stream", 2)}, None),
    "served-shards/full/third-of-three": ("s3", {"shuffle": "full", **_MORE_RANKS}, None),
}
LOADERS = {
    f"{order}/{cache}/{ranks}": (ORDERS[order][0], {**ORDERS[order][1], **RANKS[ranks]}, CACHES[cache])
    for order, cache, ranks in itertools.product(ORDERS, CACHES, RANKS)
} | MORE  # fmt: skip


class Places:
    """The datasets, made once, and the own data of each loader."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        make_pictures(folder / "pictures", 60)
        make_pictures(folder / "more", 24)
        make_shards(folder / "shards", shards=6, samples=16, size=900)
        self._bucket = leat.testing.Bucket(folder, latency="0")

    def __enter__(self) -> Places:
        self._bucket.__enter__()
        return self

    def __exit__(self, *raised) -> None:
        self._bucket.__exit__(*raised)

    def open(self, name: str, own: pathlib.Path) -> leat.Loader:
        source, options, tiers = LOADERS[name]
        options = {**USUAL, **options}
        if tiers is not None:
            disk = {"disk": own / "tier"} if "disk" in tiers else {}
            options["cache"] = leat.Cache(**{**tiers, **disk})
        if isinstance(source, list):
            return leat.Loader([self.folder / place for place in source], **options)
        if not source.startswith("s3"):
            where: object = self.folder / source.replace("unindexed", "shards")
            reach = {}
        else:
            where, reach = "s3://shards", {"storage_options": {"endpoint_url": self._bucket.url, "no_sign_request": True}}
        if not source.endswith("unindexed"):
            where = leat.Dataset(where, **reach)
            reach = {}
        return leat.Loader(where, **options, **reach)

    def hashes(self, name: str, own: pathlib.Path) -> list[list[str]]:
        """The hashes of the whole first epoch, of a batch of the second, of its
        rest, of the third."""
        os.environ["LEAT_CACHE_DIR"] = str(own / "catalogues")
        with self.open(name, own) as loader:
            for _ in loader:
                pass
            next(iter(loader))
            state = loader.state_dict()
            stats = loader.stats()
        with self.open(name, own) as loader:
            loader.load_state_dict(state)
            for _ in range(2):
                for _ in loader:
                    pass
            stats += loader.stats()
        return [[epoch["order_hash"], epoch["content_hash"]] for epoch in stats]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    with Places(tmp_path_factory.mktemp("places")) as places:
        yield places


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_gives_what_it_gave(places, monkeypatch, tmp_path, name):
    monkeypatch.setenv("LEAT_CACHE_DIR", str(tmp_path / "catalogues"))
    recorded = json.loads(RECORD.read_text())[name]
    assert len({value for epoch in recorded for value in epoch}) >= 5
    assert places.hashes(name, tmp_path) == recorded


def test_each_recorded_loader_is_opened():
    assert set(json.loads(RECORD.read_text())) == set(LOADERS)
    assert len(LOADERS) >= 40


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch, Places(pathlib.Path(scratch, "places")) as made:
        found = {name: made.hashes(name, pathlib.Path(scratch, str(number))) for number, name in enumerate(LOADERS)}
    lines = (f"{json.dumps(name)}: {json.dumps(hashes)}" for name, hashes in found.items())
    RECORD.write_text("{" + ",\n ".join(lines) + "}\n")  # A line of each, for diffs.
