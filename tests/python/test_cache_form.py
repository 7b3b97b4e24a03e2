"""Pictures kept decoded: the same pixels, counted at the server and by the loader."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

import leat
from leat.ops import (
    DecodeImage,
    Normalize,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
)
from small_datasets import make_shards

N = 60  # The number of `pictures`.
MIB = 2**20
OPS = [DecodeImage(), RandomResizedCrop(8), RandomHorizontalFlip(), Normalize("imagenet")]
OPTIONS = {"global_batch_size": 10, "drop_last": False, "ops": OPS, "ids": True, "seed": 4}


def epochs_of(served, epochs: int, **options):
    """The samples of each epoch, one by one, and the loader's report of it."""
    came = []
    with served.loader(**{**OPTIONS, **options, "epochs": epochs}) as loader:
        served.reset()
        for _ in range(epochs):
            batches = [(batch["index"].copy(), batch["image"].copy()) for batch in loader]
            came.append([np.concatenate(parts) for parts in zip(*batches)])
        return came, loader.stats(), loader.decisions()


def assert_same(came, expected) -> None:
    for (ids, images), (other_ids, other_images) in zip(came, expected, strict=True):
        np.testing.assert_array_equal(ids, other_ids)
        np.testing.assert_array_equal(images, other_images)


@pytest.mark.parametrize("form", ["encoded", "decoded", "auto"])
def test_every_form_delivers_the_same_pixels(pictures, serve, form):
    served = serve(pictures)
    plain, plain_stats, _ = epochs_of(served, 3)
    came, stats, _ = epochs_of(served, 3, cache=leat.Cache(ram=8 * MIB, form=form))
    assert_same(came, plain)
    # Draws are still of the epoch.
    assert not np.array_equal(came[1][1][np.argsort(came[1][0])], came[2][1][np.argsort(came[2][0])])
    for name in ("order_hash", "content_hash"):
        assert [epoch[name] for epoch in stats] == [epoch[name] for epoch in plain_stats]
    assert served.counters()["get"] == sum(epoch["requests"]["get"] for epoch in stats)
    assert stats[2]["cache"]["ram_hits"] == N and stats[2]["requests"]["get"] == 0
    decoded = [epoch["cache"]["decoded_hits"] for epoch in stats]
    if form == "encoded":
        assert decoded == [0, 0, 0]
    elif form == "decoded":
        # The second epoch begins to be read before all of the first is decoded.
        assert decoded[0] == 0 and decoded[2] == N


def test_a_later_run_finds_the_pixels_on_disk_and_another_chain_does_not(pictures, serve, tmp_path):
    served = serve(pictures)

    def run(*ops):
        cache = leat.Cache(disk=tmp_path / "cache", disk_limit="16MiB", form="decoded")
        came, stats, _ = epochs_of(served, 1, cache=cache, ops=ops)
        assert_same(came, epochs_of(served, 1, ops=ops)[0])
        return stats[0]["cache"]["decoded_hits"]

    assert run(DecodeImage(), Resize((9, 9)), RandomCrop(8)) == 0
    assert run(DecodeImage(), Resize((9, 9)), RandomCrop(8)) == N
    # The same up to the cut, with any ops behind it and any layout.
    assert run(DecodeImage(layout="HWC"), Resize((9, 9)), RandomHorizontalFlip()) == N
    assert run(DecodeImage(), Resize((9, 10)), RandomCrop(8)) == 0
    assert run(DecodeImage(), Resize((9, 9), interpolation="box"), RandomCrop(8)) == 0


def test_a_state_goes_on_with_decoded_samples_or_without(pictures, serve):
    served = serve(pictures)
    plain, _, _ = epochs_of(served, 2)
    decoded = leat.Cache(ram=8 * MIB, form="decoded")
    with served.loader(**OPTIONS, cache=decoded) as loader:
        list(loader)
        batches = iter(loader)
        first = [next(batches)["image"].copy() for _ in range(2)]
        state = loader.state_dict()
    for cache in (decoded, None):
        with served.loader(**OPTIONS, cache=cache) as loader:
            loader.load_state_dict(state)
            rest = [batch["image"].copy() for batch in loader]
        np.testing.assert_array_equal(np.concatenate(first + rest), plain[1][1])


def test_a_function_of_ones_own_runs_on_what_was_kept(pictures, serve):
    served = serve(pictures)
    calls = []

    def invert(image):
        calls.append(image.shape)
        return 255 - image

    ops = [DecodeImage(), Resize((9, 9)), leat.ops.Python(invert), RandomCrop(8)]
    came, stats, _ = epochs_of(served, 3, ops=ops, cache=leat.Cache(ram=8 * MIB, form="decoded"))
    assert calls == [(3, 9, 9)] * (3 * N)
    assert stats[2]["cache"]["decoded_hits"] == N
    assert_same(came, epochs_of(served, 3, ops=ops)[0])


def test_labels_and_pictures_of_shards_need_no_piece_again(tmp_path, serve):
    make_shards(tmp_path / "shards", shards=3, samples=10, size=3000)
    served = serve(tmp_path / "shards")
    with served.loader(global_batch_size=6, cache=leat.Cache(ram=8 * MIB, form="auto")) as loader:
        # Not a picture among its fields: bytes are kept, in whole pieces.
        for _ in range(2):
            for _ in loader:
                pass
        assert loader.stats()[1]["cache"]["decoded_hits"] == 0


def test_auto_says_what_it_chose_and_why(pictures, serve):
    served = serve(pictures)
    _, stats, decisions = epochs_of(served, 4, cache=leat.Cache(ram=8 * MIB, form="auto"))
    assert [one["setting"] for one in decisions].count("decoded_share") == 1
    for one in decisions:
        if one["setting"] == "decoded_share":
            assert one["before"] == 0 and 0 <= one["after"] <= 1
            assert f"{N} samples" in one["reason"]
            # Chosen in the first epoch, measured in the third.
            assert (one["expected_gain"] is None) == (one["found_gain"] is None) == (one["after"] == 0)
    # At least each of the trials has been kept decoded.
    assert stats[3]["cache"]["decoded_hits"] >= 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cache": leat.Cache(ram=MIB, form="pixels")}, "encoded, decoded or auto"),
        ({"cache": leat.Cache(ram=MIB, form="decoded"), "ops": []}, "decode_image"),
    ],
)
def test_what_cannot_be_is_refused(pictures, serve, options, said):
    with pytest.raises(leat.InvalidArgument, match=said):
        serve(pictures).loader(**{**OPTIONS, **options})


def test_bench_has_the_same_word(pictures, serve):
    served = serve(pictures)
    done = subprocess.run(
        [leat.testing.find_binary(), "bench", served.url, "--endpoint-url", served.bucket.url,
         "--no-sign-request", "--global-batch-size", "10", "--epochs", "3", "--json",
         "--ops", "decode_image,random_resized_crop:8", "--cache-ram", "8MiB",
         "--cache-form", "decoded"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)["epochs"][2]["cache"]["decoded_hits"] == N
