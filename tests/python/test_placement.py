"""Tiers that may hold what was placed beforehand, and nothing else: CoorDL's and NoPFS'."""

from __future__ import annotations

import json

import pytest

import leat
from small_datasets import make_shards
from test_cache import COST, OPTIONS, gets_of_epochs, leat_command


# Two nodes of a rank each, which read halves of every epoch. `first_epoch` holds less
# than has room: the samples that the rank read in epoch 0; `frequency` holds those it
# reads most often.
@pytest.mark.parametrize("placement", ["any", "first_epoch", "frequency"])
def test_what_is_placed_hits_what_leat_plan_said(serve, tmp_path, placement):
    samples, epochs, ram, disk = 3000, 4, 600 * COST, 1200 * COST
    tiers = ", ".join(f'{{policy = "never_evict", capacity = {limit}}}' for limit in (ram, disk))
    file = tmp_path / "job.toml"
    file.write_text(
        f"[[simulation]]\nsamples = {samples}\nsample_bytes = {COST}\nseed = 5\nworld_size = 2\nnodes = 2\n"
        f'global_batch_size = 8\nepochs = {epochs}\nplacement = "{placement}"\ntiers = [{tiers}]\n'
    )
    planned = json.loads(leat_command("plan", "--simulate", str(file), "--json").stdout)
    expected = planned["simulations"][0]["total"]["tier_hits"]
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="0ms", repeat=f"many/x.bin:{samples}")
    hits, gets = [0, 0], 0
    for rank in range(2):
        cache = leat.research.Cache(
            ram=ram, disk=tmp_path / f"cache{rank}", disk_limit=disk, policy="never_evict", placement=placement
        )
        seen, stats = gets_of_epochs(
            served, epochs, seed=5, global_batch_size=8, memory="32KiB", max_in_flight=4, rank=rank,
            world_size=2, cache=cache,
        )  # fmt: skip
        gets += sum(seen)
        hits = [had + sum(epoch["cache"][f"{tier}_hits"] for epoch in stats)
                for had, tier in zip(hits, ("ram", "disk"))]  # fmt: skip
    assert gets == samples * epochs - sum(hits)
    assert min(expected) > 500
    for had, said in zip(hits, expected):
        assert 0.99 * said <= had <= 1.01 * said


def test_a_placement_is_the_same_after_a_resume(serve, tmp_path):
    samples, epochs, disk = 400, 6, 100 * COST
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "x.bin").write_bytes(b"x" * 3000)
    served = serve(tmp_path / "many", latency="0ms", repeat=f"many/x.bin:{samples}")

    def run(folder, ends: list[int]) -> list[int]:
        """Disk hits of each epoch, for a job that is ended and resumed at the given
        step."""
        hits, state = [], None
        for begin, end in zip([0, *ends], [*ends, epochs]):
            cache = leat.research.Cache(
                disk=tmp_path / folder, disk_limit=disk, policy="never_evict", placement="frequency"
            )
            with served.loader(
                **OPTIONS, rank=0, world_size=2, epochs=epochs, memory="32KiB", max_in_flight=4, cache=cache
            ) as loader:
                if state is not None:
                    loader.load_state_dict(state)
                for _ in range(begin, end):
                    for _ in loader:
                        pass
                state = loader.state_dict()
                hits += [epoch["cache"]["disk_hits"] for epoch in loader.stats()]
        return hits

    whole, resumed = run("whole", []), run("resumed", [2, 4])
    assert len(whole) == len(resumed) == epochs
    # Samples that are read in four of six epochs, and are all that has room, are there
    # by the fourth. (A read on its way as an epoch ends counts as a hit of the next
    # one's first reads.)
    assert resumed[3:] == pytest.approx(whole[3:], abs=3) and 30 < min(whole[3:]) and max(whole[3:]) < 90


def test_a_placement_says_what_it_needs(pictures, tmp_path, monkeypatch):
    def refusal(cache, **more):
        with pytest.raises(leat.InvalidArgument) as error:
            leat.Loader(pictures, **{"global_batch_size": 20, "shuffle": True, "rank": 0, "world_size": 2, "cache": cache, **more})
        return str(error.value)

    def placed(placement="frequency", **more):
        return leat.research.Cache(**{"ram": "64MiB", "policy": "never_evict", "placement": placement, **more})

    assert '"never_evict" hold, and it is "belady"; give that policy' in refusal(placed(policy="belady"), epochs=3)
    assert "any, first_epoch, frequency" in refusal(placed("luck"), epochs=3)
    assert "give epochs=" in refusal(placed())
    assert "more than 2000000000; give fewer epochs=" in refusal(placed(), epochs=10**9)
    assert "give form=" in refusal(placed(form="auto"), epochs=3)
    assert "leave one of them out" in refusal(placed(shared=True), epochs=3)
    assert "leave that out" in refusal(placed(locality="sticky"), epochs=3)
    assert "give ram=" in refusal(placed(ram=None, peers=["127.0.0.1:9"]), epochs=3)
    # Three ranks here and one elsewhere are no two nodes alike.
    for name, value in {"RANK": 0, "WORLD_SIZE": 4, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 3}.items():
        monkeypatch.setenv(name, str(value))
    assert "start as many on each" in refusal(placed(), epochs=3, rank=None, world_size=None)

    make_shards(tmp_path / "shards", shards=2, samples=16, size=1000)
    make_shards(tmp_path / "unseen", shards=2, samples=16, size=1000)
    shards = {"rank": 0, "world_size": 1, "epochs": 3}
    with pytest.raises(leat.InvalidArgument, match='shuffle="full"'):
        leat.Loader(tmp_path / "shards", global_batch_size=8, shuffle=True, cache=placed(), **shards)
    with pytest.raises(leat.InvalidArgument, match="leat index"):
        leat.Loader(tmp_path / "unseen", shuffle="stream", global_batch_size=8, cache=placed(), **shards)
    with leat.Loader(tmp_path / "shards", shuffle="full", global_batch_size=8, cache=placed(), **shards) as loader:
        assert sum(1 for _ in loader) == 4
    # A state of another global batch was dealt otherwise.
    with leat.Loader(pictures, batch_size=5, shuffle=True, cache=placed(), epochs=3, rank=0, world_size=2) as loader:
        state = loader.state_dict()
    with leat.Loader(pictures, batch_size=10, shuffle=True, cache=placed(), epochs=3, rank=0, world_size=2) as loader:
        with pytest.raises(leat.InvalidArgument, match="global_batch_size=10"):
            loader.load_state_dict(state)


def test_bench_takes_a_placement(pictures, serve):
    served = serve(pictures)
    words = ["bench", served.url, "--endpoint-url", served.bucket.url, "--no-sign-request",
             "--global-batch-size", "10", "--epochs", "2", "--json", "--cache-ram", "8MiB",
             "--rank", "0", "--world-size", "2", "--cache-placement", "first_epoch"]  # fmt: skip
    assert "never_evict" in leat_command(*words).stderr
    done = leat_command(*words, "--cache-policy", "never_evict")
    assert done.returncode == 0, done.stderr
    second = json.loads(done.stdout)["epochs"][1]["cache"]
    # None of the other node's part is kept, though there is room.
    assert second["ram_hits"] > 0 and second["misses"] > 0
