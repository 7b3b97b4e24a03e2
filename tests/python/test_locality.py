"""Ranks that meet their samples again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import leat

N = 60  # The number of `pictures`.


def ids(loader: leat.Loader) -> list[list[int]]:
    return [batch["index"].tolist() for batch in loader]


def open_rank(folder, rank: int, **options) -> leat.Loader:
    return leat.Loader(
        folder, global_batch_size=12, shuffle=True, seed=3, rank=rank, world_size=3,
        **{"fields": ["index"], "batch": "dict", **options}
    )


LOCALITIES = ["sticky", "remap", "balance"]
STICKY = leat.Cache(ram="256KiB", locality="sticky")


def second_epoch(folder, rank: int, locality: str = "none", **options) -> list[list[int]]:
    cache = leat.Cache(ram="256KiB", locality=locality)
    with open_rank(folder, rank, cache=cache, **options) as loader:
        loader.set_epoch(1)
        return ids(loader)


@pytest.mark.parametrize("locality", LOCALITIES)
def test_steps_keep_their_samples_and_ranks_their_share(pictures, locality):
    plain = [second_epoch(pictures, rank) for rank in range(3)]
    dealt = [second_epoch(pictures, rank, locality=locality, fields=["index", "data"]) for rank in range(3)]
    assert dealt != plain
    for step in range(N // 12):
        assert [len(rank[step]) for rank in dealt] == [4, 4, 4]
        assert sorted(sum((rank[step] for rank in dealt), [])) == sorted(
            sum((rank[step] for rank in plain), [])
        )


def test_a_rank_meets_most_of_its_samples_again(pictures):
    with open_rank(pictures, 1, cache=STICKY) as sticky, open_rank(pictures, 1) as plain:
        again = [len({*sum(ids(loader), [])} & {*sum(ids(loader), [])}) for loader in (sticky, plain)]
    assert again[0] > 12 > again[1]


@pytest.mark.parametrize("world_size", [1, 3])
def test_a_state_goes_on_with_it_or_without(pictures, world_size):
    with open_rank(pictures, 0, cache=STICKY) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
    rest: list[int] = []
    for rank in range(world_size):
        with leat.Loader(pictures, global_batch_size=12, shuffle=True, fields=["index"], batch="dict", seed=3, rank=rank,
                         world_size=world_size) as loader:  # fmt: skip
            loader.load_state_dict(state)
            rest += sum(ids(loader), [])
    with leat.Loader(pictures, global_batch_size=12, shuffle=True, fields=["index"], batch="dict", seed=3, rank=0, world_size=1) as loader:
        assert sorted(rest) == sorted(sum(ids(loader)[1:], []))


def test_remap_needs_a_cache_whose_size_is_given(pictures, tmp_path):
    with pytest.raises(leat.InvalidArgument, match="there is none; give cache="):
        open_rank(pictures, 0, cache=leat.Cache(peers=["127.0.0.1:9"], locality="remap"))
    with pytest.raises(leat.InvalidArgument, match="same size"):
        open_rank(pictures, 0, cache=leat.Cache(disk=tmp_path, locality="balance"))
    with pytest.raises(leat.InvalidArgument, match="none, sticky, remap, balance"):
        open_rank(pictures, 0, cache=leat.Cache(ram="1MiB", locality="magic"))


RANKS = 4
EPOCHS = 4
SAMPLES = 400
RECORD = 4096 + 128  # The cost of a record of up to a page in a tier.

_RANK = """
import json, leat, sys
url, endpoint, locality, ram = sys.argv[1:]
with leat.research.Loader(url, storage_options={"endpoint_url": endpoint, "no_sign_request": True}, global_batch_size=40, shuffle=True, seed=5,
                 fields=["index", "data"], batch="dict", cache=leat.Cache(ram=ram, locality=locality),
                 epochs=%d, max_in_flight=1, memory="48KiB", hashes=False) as loader:
    print(json.dumps([[batch["index"].tolist() for batch in loader] for _ in range(%d)]))
""" % (EPOCHS, EPOCHS)


def run_ranks(bucket: leat.testing.Bucket, locality: str, ram: int) -> list[list[list[list[int]]]]:
    """The ids of each epoch and step of each rank; each is a node of its own."""
    ranks = []
    for rank in range(RANKS):
        launcher = {"RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}
        ranks.append(subprocess.Popen(
            [sys.executable, "-c", _RANK, "s3://many", bucket.url, locality, str(ram)],
            env={**os.environ, **{name: str(value) for name, value in launcher.items()}},
            stdout=subprocess.PIPE, text=True))  # fmt: skip
    said = [rank.communicate(timeout=80)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS
    return [json.loads(line) for line in said]


def simulated_gets(folder, locality: str, ram: int) -> int:
    file = folder / "job.toml"
    file.write_text(
        f"[[simulation]]\nsamples = {SAMPLES}\nsample_bytes = {RECORD}\nseed = 5\n"
        f'global_batch_size = 40\nworld_size = {RANKS}\nnodes = {RANKS}\ntail = "drop"\n'
        f'epochs = {EPOCHS}\nlocality = "{locality}"\ntiers = [{{capacity = {ram}}}]\n'
    )
    command = [leat.testing.find_binary(), "plan", "--simulate", str(file), "--json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(said)["simulations"][0]["total"]["gets"]


def test_the_ladder_loads_what_is_simulated(tmp_path):
    """SOLAR's ladder, counted by the bucket: the same steps, ever fewer GETs."""
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    ram = SAMPLES // RANKS * 3 // 4 * RECORD  # Three quarters of a rank's reads.
    gets, steps = {}, {}
    for locality in ("none", "remap", "balance"):
        with leat.testing.Bucket(tmp_path, repeat=f"many/x.bin:{SAMPLES}") as bucket:
            leat.Dataset("s3://many", storage_options={"endpoint_url": bucket.url, "no_sign_request": True})  # Listed once.
            bucket.reset_counters()
            ranks = run_ranks(bucket, locality, ram)
            gets[locality] = bucket.counters()["get"]
        assert all(len(step) == 10 for rank in ranks for epoch in rank for step in epoch)
        steps[locality] = [
            [sorted(sum(of_step, [])) for of_step in zip(*of_epoch)] for of_epoch in zip(*ranks)
        ]
    assert steps["none"] == steps["remap"] == steps["balance"]
    assert gets["none"] * 0.9 > gets["remap"] > gets["balance"] > SAMPLES
    for locality, counted in gets.items():
        assert counted == pytest.approx(simulated_gets(tmp_path, locality, ram), rel=0.01)


_TOLD = """
import os, sys, torch.distributed, leat
rank = int(os.environ["RANK"])
torch.distributed.init_process_group(
    "gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
leat.Loader(sys.argv[1], global_batch_size=12, shuffle=True,
            cache=leat.Cache(ram="1MiB" if rank else "2MiB", locality="remap")).close()
"""


def test_ranks_with_caches_of_different_sizes_are_told(pictures, tmp_path):
    pytest.importorskip("torch")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", _TOLD, pictures, tmp_path / "rendezvous"], text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}, stderr=subprocess.PIPE)
        for rank in range(2)
    ]  # fmt: skip
    told = [rank.communicate(timeout=80)[1] for rank in ranks]
    (said,) = [text for rank, text in zip(ranks, told) if rank.returncode]
    assert "InvalidArgument" in said and "this rank deals samples by remap over caches of" in said
