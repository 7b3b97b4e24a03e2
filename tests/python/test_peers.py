"""The nodes' memory as one cache: peers that exist, and peers="auto"."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

import leat
from leat import _native
from leat.testing import Bucket


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "buckets" / "data" / "train"
    folder.mkdir(parents=True)
    for i in range(200):
        (folder / f"{i:03}.bin").write_bytes(bytes([i]) * 3000)
    return tmp_path / "buckets"


def _is_running(pid: int) -> bool:
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def _two_ranks(bucket, cache, epochs):
    return [
        leat.Loader(
            bucket.s3_url("data", "train"), storage_options={"endpoint_url": bucket.url, "no_sign_request": True, "no_hedge": True},
            global_batch_size=20, shuffle=True, rank=rank, world_size=2, cache=cache, ids=True,
            epochs=epochs,  # Nothing is fetched for one that never comes.
        )
        for rank in range(2)
    ]


def test_the_bucket_is_read_once_for_the_whole_run(data):
    server = _native.PeerServer("127.0.0.1", "64MiB")
    cache = leat.Cache(peers=[server.name], peer_patience="20s")
    with Bucket(data, latency="1ms") as bucket:
        loaders = _two_ranks(bucket, cache, epochs=4)
        for epoch in range(4):
            seen = set()
            for loader in loaders:
                for batch in loader:
                    for value, index in zip(batch["data"], batch["index"].tolist()):
                        assert bytes(value) == bytes([index]) * 3000
                        seen.add(index)
            assert len(seen) == 200, epoch

        assert bucket.counters()["get"] == 200
    epochs = [loader.stats() for loader in loaders]
    hits = sum(epoch["cache"]["peer_hits"] for each in epochs for epoch in each)
    misses = sum(epoch["cache"]["misses"] for each in epochs for epoch in each)
    assert (hits, misses) == (600, 200)


def test_values_of_another_secret_are_not_used(data, monkeypatch, caplog):
    server = _native.PeerServer("127.0.0.1", "64MiB")
    cache = leat.Cache(peers=[server.name], peer_patience="20s")
    with Bucket(data, latency="1ms") as bucket:
        for secret, gets in [("ours", 200), ("ours", 200), ("a forger's", 400), ("ours", 600)]:
            monkeypatch.setenv("LEAT_PEER_SECRET", secret)
            loaders = _two_ranks(bucket, cache, epochs=1)
            assert sum(len(batch["index"]) for loader in loaders for batch in loader) == 200
            assert bucket.counters()["get"] == gets
            for loader in loaders:
                loader.close()
    assert "not sealed with this job's secret" in caplog.text
    assert "ours" not in caplog.text


def test_peers_without_a_secret_are_warned_of(data, caplog):
    server = _native.PeerServer("127.0.0.1", "64MiB")
    folder = str(data / "data" / "train")
    leat.Loader(folder, batch_size=10, train=False, cache=leat.Cache(peers=[server.name])).close()
    assert "set LEAT_PEER_SECRET" in caplog.text


def _held(name):
    """Values on a server."""
    host, _, port = name.partition(":")
    with socket.create_connection((host, int(port))) as connection, connection.makefile("rb") as replies:
        connection.sendall(b"stats\r\n")
        for line in iter(replies.readline, b"END\r\n"):
            if line.startswith(b"STAT curr_items "):
                return int(line.split()[2])
    raise AssertionError("the server did not say")


def test_samples_lie_evenly_where_the_plan_has_them(data):
    servers = [_native.PeerServer("127.0.0.1", "64MiB") for _ in range(2)]
    names = [server.name for server in servers]
    cache = leat.research.Cache(peers=names, peer_placement="frequency", peer_patience="20s")
    with Bucket(data, latency="1ms") as bucket:
        loaders = _two_ranks(bucket, cache, epochs=3)
        for _ in range(3):
            for loader in loaders:
                for _ in loader:
                    pass
        assert bucket.counters()["get"] == 200
    for loader in loaders:
        loader.close()
    # Keys would draw 100 for each one time in eighteen.
    assert [_held(name) for name in names] == [100, 100]


def test_placement_says_what_it_needs(data):
    def refusal(cache, **more):
        with pytest.raises(leat.InvalidArgument) as error:
            leat.Loader(str(data / "data" / "train"), global_batch_size=20, shuffle=True, rank=0, world_size=2, cache=cache,
                        **more)
        return str(error.value)

    two = leat.research.Cache(peers=["127.0.0.1:9", "127.0.0.1:10"], peer_placement="frequency")
    assert "give epochs=" in refusal(two)
    one = leat.research.Cache(peers=["127.0.0.1:9"], peer_placement="frequency")
    assert "1 for 2 ranks" in refusal(one, epochs=3)
    assert "leave that out" in refusal(dataclasses.replace(two, locality="sticky"), epochs=3)
    assert "give peers=" in refusal(leat.research.Cache(ram="64MiB", peer_placement="frequency"), epochs=3)
    assert "more than 2000000000; give fewer epochs=" in refusal(two, epochs=10**9)
    assert "key or frequency" in refusal(leat.research.Cache(peers=["127.0.0.1:9"], peer_placement="luck"), epochs=3)


def test_a_lost_server_costs_misses_alone(data, caplog):
    server = _native.PeerServer("127.0.0.1", "64MiB")
    name = server.name
    with Bucket(data, latency="1ms") as bucket:
        cache = leat.Cache(peers=[name], peer_patience="5s")
        loaders = _two_ranks(bucket, cache, epochs=3)
        for loader in loaders:
            for _ in loader:
                pass
        time.sleep(0.5)  # Now nobody asks it for anything.
        del server
        time.sleep(0.1)

        for _ in range(2):
            seen = [i for loader in loaders for batch in loader for i in batch["index"].tolist()]
            assert sorted(seen) == list(range(200))
        # All of the next epoch may have been asked for ahead, none of the last.
        assert 400 <= bucket.counters()["get"] <= 600
    assert f"memcached at {name} is left alone for now" in caplog.text


def test_auto_starts_a_server_that_ends_with_the_job(data, tmp_path):
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import leat
            from leat._job import _peers
            loader = leat.Loader(sys.argv[1], batch_size=10, shuffle=True,
                                 cache=leat.Cache(peers="auto", peer_memory="64MiB",
                                                  peer_patience="20s"))
            for epoch in range(2):
                for batch in loader:
                    pass
            other = leat.Loader(sys.argv[1], batch_size=10, shuffle=True, cache=leat.Cache(peers="auto"))
            hits = loader.stats()[1]["cache"]["peer_hits"]
            print(_peers._server.pid, _peers._server.name, hits, flush=True)
            if sys.argv[2] == "wait":
                time.sleep(60)
            """
        )
    )
    for how in ("end", "wait"):
        job = subprocess.Popen(
            [sys.executable, str(script), str(data / "data"), how],
            stdout=subprocess.PIPE, text=True,
        )
        pid, name, hits = job.stdout.readline().split()
        assert name.startswith("127.0.0.1:")
        assert int(hits) == 200
        if how == "wait":
            assert _is_running(int(pid))
            os.kill(job.pid, signal.SIGKILL)
        job.wait()
        job.stdout.close()
        while _is_running(int(pid)):  # The test's alarm ends it.
            time.sleep(0.01)


def test_ranks_find_each_other_through_torch(data, tmp_path):
    pytest.importorskip("torch", reason="torch is missing: pip install torch")
    script = tmp_path / "rank.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import torch.distributed as dist
            import leat
            dist.init_process_group("gloo")
            loader = leat.Loader(sys.argv[1], storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True},
                                 global_batch_size=20, shuffle=True, epochs=3,
                                 cache=leat.Cache(peers="auto", peer_memory="64MiB",
                                                  peer_patience="20s"))
            for epoch in range(3):
                for batch in loader:
                    pass
                dist.barrier()
            """
        )
    )
    with Bucket(data, latency="1ms") as bucket:
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone",
             str(script), bucket.s3_url("data", "train"), bucket.url],
            check=True, timeout=80, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        # On a busy machine, some are not with the other one yet when that asks; alone, the two read 600.
        assert 200 <= bucket.counters()["get"] < 300
    # One of them ends first, and its server with it: that is no news.
    assert "left alone" not in done.stderr, done.stderr


def test_says_what_is_wrong(data, monkeypatch):
    source = str(data / "data")
    with pytest.raises(leat.InvalidArgument, match="host:port"):
        leat.Loader(source, batch_size=1, shuffle=True, cache=leat.Cache(peers=["http://x"]))
    with pytest.raises(leat.InvalidArgument, match='"auto" or a list'):
        leat.Cache(peers="node1:11211")
    for not_a_list in (11211, b"node1:11211"):
        with pytest.raises(leat.InvalidArgument, match='"auto" or a list'):
            leat.Cache(peers=not_a_list)
    for patience in ("0", "0ms"):
        with pytest.raises(leat.InvalidArgument, match="peer_patience= of 0"):
            leat.Loader(source, batch_size=1, shuffle=True, cache=leat.Cache(peers=["a:1"], peer_patience=patience))
    with leat.Loader(source, batch_size=1, shuffle=True, cache=leat.Cache(ram="1MiB", peers=None)) as loader:
        next(iter(loader))
    with pytest.raises(leat.InvalidArgument, match="peer_memory"):
        leat.Cache(peers=["a:1"], peer_memory="1GiB")
    with pytest.raises(leat.InvalidArgument, match="init_process_group"):
        leat.Loader(source, batch_size=1, shuffle=True, rank=0, world_size=2, cache=leat.Cache(peers="auto"))
    with pytest.raises(leat.InvalidArgument, match="at least 16 MiB"):
        leat.Loader(source, batch_size=1, shuffle=True, cache=leat.Cache(peers="auto", peer_memory="1MiB"))
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(leat.NotFound, match="apt install memcached"):
        leat.Loader(source, batch_size=1, shuffle=True, cache=leat.Cache(peers="auto"))


def _arguments(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


@pytest.mark.parametrize(("ranks", "connections"), [(1, 1024), (240, 1024), (2000, 8064)])
def test_a_server_has_a_connection_for_each_rank(ranks, connections):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    server = _native.PeerServer("127.0.0.1", "64MiB", ranks)
    words = _arguments(server.pid)
    assert words[words.index("-c") + 1] == str(min(connections, hard))


def test_a_server_that_may_not_have_as_many_says_so():
    script = (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))\n"
        "from leat import _native\nserver = _native.PeerServer('127.0.0.1', '64MiB', 2000)\n"
        "print(open(f'/proc/{server.pid}/cmdline').read().replace('\\0', ' '))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert " -c 600 " in done.stdout
    assert "may open 600 files (ulimit -Hn), and 2000 ranks need a connection each" in done.stderr
    assert "Raise the limit to 8064" in done.stderr
