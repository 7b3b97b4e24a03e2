"""Several jobs on one dataset: it is fetched and decoded once, counted at the server."""

from __future__ import annotations

import os
import pathlib
import signal
import tempfile

import pytest

import leat
from jobs_at_once import jobs, run_at_once

N = 60  # The number of `pictures`.
MIB = 2**20
OPS = [["DecodeImage"], ["Resize", 12], ["RandomCrop", 8], ["Normalize", "imagenet"]]


def seeds(*numbers: int) -> list[dict]:
    return [{"global_batch_size": 10, "seed": seed} for seed in numbers]


def tiers(tmp_path: pathlib.Path, kind: str) -> dict:
    if kind == "ram":
        return {"ram": 8 * MIB, "shared": True}
    return {"disk": str(tmp_path / "cache"), "disk_limit": 8 * MIB, "shared": True}


def of_epochs(found: list[dict], name: str) -> int:
    return sum(epoch["cache"][name] for job in found for epoch in job["stats"])


@pytest.mark.parametrize("kind", ["ram", "disk"])
@pytest.mark.parametrize("numbers", [(1, 2, 3), (4, 4, 4)])
def test_three_jobs_read_the_bucket_once(pictures, serve, tmp_path, kind, numbers):
    served = serve(pictures)
    found = run_at_once(served, tiers(tmp_path, kind), seeds(*numbers), epochs=2)
    assert served.counters()["get"] == N
    assert of_epochs(found, "misses") == N
    for job in found:
        assert all(sorted(ids) == list(range(N)) for ids in job["ids"])
    orders = {tuple(job["ids"][0]) for job in found}
    assert len(orders) == len(set(numbers))


@pytest.mark.parametrize("numbers", [(1, 2, 3), (4, 4, 4)])
def test_three_jobs_decode_it_once(pictures, serve, tmp_path, numbers):
    served = serve(pictures)
    cache = {**tiers(tmp_path, "ram"), "form": "decoded"}
    found = run_at_once(served, cache, seeds(*numbers), epochs=2, ops=OPS)
    assert served.counters()["get"] == N
    assert 3 * 2 * N - of_epochs(found, "decoded_hits") == N
    with served.loader(**seeds(numbers[0])[0], drop_last=False, epochs=2, ops=[
        leat.ops.DecodeImage(), leat.ops.Resize(12), leat.ops.RandomCrop(8), leat.ops.Normalize("imagenet"),
    ]) as alone:  # fmt: skip
        for _ in range(2):
            for _ in alone:
                pass
        expected = alone.stats()
    for name in ("order_hash", "content_hash"):
        assert [epoch[name] for epoch in found[0]["stats"]] == [epoch[name] for epoch in expected]


def test_jobs_that_do_not_say_so_share_nothing_in_ram(pictures, serve):
    served = serve(pictures)
    found = run_at_once(served, {"ram": 8 * MIB}, seeds(1, 2))
    assert served.counters()["get"] == of_epochs(found, "misses") == 2 * N


def test_a_killed_job_keeps_nobody_waiting(pictures, serve, tmp_path):
    # Its requests are not answered before it is killed.
    served = serve(pictures, latency="700ms")
    cache = tiers(tmp_path, "ram")
    with jobs(served, cache, seeds(4, 4)) as (killed, other):
        served.reset()
        killed.go()
        while served.counters()["most_in_flight"] == 0:
            pass
        other.go()
        os.kill(killed.process.pid, signal.SIGKILL)
        found = other.hear()
        assert sorted(found["ids"][0]) == list(range(N))
        other.go()
        assert other.process.wait(30) == 0


@pytest.mark.parametrize("ops", [(), OPS], ids=["bytes", "decoded"])
def test_a_wait_for_another_job_is_not_the_stores_fault(pictures, serve, tmp_path, ops):
    # It has asked for all and does not go on: the other waits as long as it has patience.
    served = serve(pictures, latency="300ms")
    cache = {**tiers(tmp_path, "ram"), **({"form": "decoded"} if ops else {})}
    with jobs(served, cache, seeds(4, 4), ops=ops) as (stopped, other):
        served.reset()
        stopped.go()
        while served.counters()["most_in_flight"] == 0:
            pass
        os.kill(stopped.process.pid, signal.SIGSTOP)
        other.go()
        try:
            stalls = other.hear()["stats"][0]["stalls"]
        finally:
            os.kill(stopped.process.pid, signal.SIGCONT)

    assert stalls["other_job"] > 2
    assert stalls["other_job"] > stalls["storage"]


def test_a_job_alone_has_no_other_to_blame(pictures, serve, tmp_path):
    served = serve(pictures, latency="50ms")
    [alone] = run_at_once(served, tiers(tmp_path, "ram"), seeds(4))

    assert alone["stats"][0]["stalls"]["other_job"] == 0
    assert alone["stats"][0]["stalls"]["storage"] > 0


def test_what_a_job_leaves_is_gone_with_the_last(pictures, serve, tmp_path, monkeypatch):
    served = serve(pictures)
    with tempfile.TemporaryDirectory() as short:  # The name of a socket is, too.
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        run_at_once(served, tiers(tmp_path, "ram"), seeds(1, 2))
        assert not list(pathlib.Path(short).glob("leat-ram-*"))
    run_at_once(served, tiers(tmp_path, "disk"), seeds(1, 2))
    left = {path.name.split("-")[0] for path in (tmp_path / "cache").iterdir()}
    assert left == {"segment"}


# --- what is cached first ----------------------------------------------------


def ids_of(batches) -> list[int]:
    return [int(i) for batch in batches for i in batch["index"]]


def half_warm(served, tmp_path, **cache) -> leat.Loader:
    """A loader before whose first epoch a third of the samples is cached."""
    folder = {"disk": str(tmp_path / "cache"), "disk_limit": 8 * MIB}
    options = {"global_batch_size": 10, "drop_last": False, "ids": True}
    with served.loader(**options, seed=77, epochs=1, cache=leat.Cache(**folder), max_in_flight=1,
                       memory="20KiB") as warm:  # fmt: skip
        batches = iter(warm)
        for _ in range(2):
            next(batches)
    return served.loader(**options, seed=5, epochs=3, cache=leat.Cache(**folder, **cache))


def order_without(served) -> list[list[int]]:
    with served.loader(global_batch_size=10, drop_last=False, ids=True, seed=5, epochs=3) as plain:
        return [ids_of(plain) for _ in range(3)]


def test_what_is_cached_comes_first_and_each_epoch_stays_a_permutation(pictures, serve, tmp_path, caplog):
    served = serve(pictures)
    plain = order_without(served)
    assert "first_within" not in caplog.text
    with half_warm(served, tmp_path, first_within=N) as loader:
        assert "first_within=60" in caplog.text
        first = ids_of(loader)
        later = [ids_of(loader) for _ in range(2)]
        stats = loader.stats()
    assert sorted(first) == list(range(N)) and first != plain[0]
    assert all(sorted(ids) == list(range(N)) for ids in later)
    # All that was cached before came before all that was not.
    hits = stats[0]["cache"]["disk_hits"]
    assert 20 <= hits < N
    place = {sample: at for at, sample in enumerate(plain[0])}
    came = [place[sample] for sample in first]
    assert came[:hits] == sorted(came[:hits]) and came[hits:] == sorted(came[hits:])


def test_off_by_default(pictures, serve, tmp_path):
    served = serve(pictures)
    with half_warm(served, tmp_path) as loader:
        assert [ids_of(loader) for _ in range(3)] == order_without(served)
        assert "left_behind" not in loader.state_dict()


@pytest.mark.parametrize("within", [N, 13])
@pytest.mark.parametrize("broken_off", [1, 2, 3, 5])
def test_a_state_goes_on_with_none_twice_and_none_lost(pictures, serve, tmp_path, within, broken_off):
    served = serve(pictures)
    with half_warm(served, tmp_path, first_within=within) as loader:
        batches = iter(loader)
        came = ids_of(next(batches) for _ in range(broken_off))
        state = loader.state_dict()
    assert state["position"] == len(came) == 10 * broken_off
    cache = leat.Cache(disk=tmp_path / "cache", disk_limit=8 * MIB, first_within=within)
    options = {"drop_last": False, "ids": True, "seed": 5, "epochs": 3}
    # Another batch size, with and without the window: the same samples are left.
    for more in ({"cache": cache, "global_batch_size": 10}, {"global_batch_size": 7}):
        with served.loader(**options, **more) as resumed:
            resumed.load_state_dict(state)
            assert resumed.state_dict()["position"] == state["position"]
            assert resumed.remaining == -(-(N - len(came)) // more["global_batch_size"])
            rest = ids_of(resumed)
            assert sorted(came + rest) == list(range(N))
            assert sorted(ids_of(resumed)) == list(range(N))


def test_each_rank_reorders_its_own_and_its_state_is_its_own(pictures, serve, tmp_path):
    served = serve(pictures)
    half_warm(served, tmp_path).close()
    options = {"global_batch_size": 10, "drop_last": False, "ids": True, "seed": 5, "epochs": 2, "world_size": 2}
    plain, came, states = [], [], []
    for rank in range(2):
        with served.loader(**options, rank=rank) as loader:
            plain.append(ids_of(loader))
        cache = leat.Cache(disk=tmp_path / "cache", disk_limit=8 * MIB, first_within=N)
        with served.loader(**options, rank=rank, cache=cache) as loader:
            batches = iter(loader)
            came.append(ids_of(next(batches) for _ in range(2)))
            states.append(loader.state_dict())
            for batch in batches:
                assert len(batch["index"]) == 5
    assert any(state["left_behind"] for state in states)
    for rank in range(2):
        with served.loader(**options, rank=rank) as resumed:
            resumed.load_state_dict(states[rank])
            assert sorted(came[rank] + ids_of(resumed)) == sorted(plain[rank])
        with served.loader(**options, rank=1 - rank) as other, pytest.raises(leat.InvalidArgument, match="rank"):
            other.load_state_dict(states[rank])


@pytest.mark.parametrize(
    "change",
    [
        {"left_behind": "x"}, {"left_behind": [-1]}, {"left_behind": [3, 3]}, {"left_behind": [59]},
        {"left_behind": list(range(60))}, {"rank": 1}, {"world_size": 2}, {"leat_state": 4}, {"rank": None},
    ],
)  # fmt: skip
def test_a_damaged_state_is_refused(pictures, serve, tmp_path, change):
    served = serve(pictures)
    with half_warm(served, tmp_path, first_within=N) as loader:
        next(iter(loader))
        state = loader.state_dict()
    assert state["left_behind"]
    with half_warm(served, tmp_path, first_within=N) as loader:
        with pytest.raises(leat.InvalidArgument):
            loader.load_state_dict({**state, **change})
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cache": leat.Cache(ram=MIB, first_within=8, locality="sticky")}, "locality"),
        ({"cache": leat.Cache(ram=MIB, first_within=10**9)}, "at most"),
    ],
)
def test_what_cannot_be_reordered_is_refused(pictures, options, says):
    cache = leat.Cache(ram=MIB, first_within=8)
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.Loader(pictures, batch_size=4, shuffle=True, **{"cache": cache, **options})


def test_shards_in_pieces_are_refused(small):
    with pytest.raises(leat.InvalidArgument, match="pieces"):
        leat.Loader(small, batch_size=4, shuffle=True, cache=leat.Cache(ram=MIB, first_within=8))


@pytest.mark.parametrize("within", [-1, 1.5, True, "8"])
def test_a_window_is_a_number_of_positions(within):
    with pytest.raises(leat.InvalidArgument, match="first_within"):
        leat.Cache(ram=MIB, first_within=within)
