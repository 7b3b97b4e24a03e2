"""peers="auto" over two nodes: each a namespace, with the bucket on a third."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

from leat.testing import find_binary

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
from namespaces import DEVICE, HUB, address, network, run  # noqa: E402

SAMPLES, EPOCHS, NODES = 200, 3, 2

RANK = """
    import json, os, sys
    import torch.distributed as dist
    import leat
    from leat._job import _peers
    dist.init_process_group("gloo")
    cache = leat.Cache(peers="auto", peer_memory="64MiB", peer_patience="20s")
    loader = leat.Loader(sys.argv[1], storage_options={"endpoint_url": sys.argv[2], "no_sign_request": True, "no_hedge": True},
                         global_batch_size=20, shuffle=True, epochs=3, ids=True, cache=cache)
    seen = []
    for epoch in range(3):
        seen.append([])
        for batch in loader:
            for value, index in zip(batch["data"], batch["index"].tolist()):
                assert bytes(value) == bytes([index]) * 3000
                seen[-1].append(index)
        dist.barrier()
    hits = sum(epoch["cache"]["peer_hits"] for epoch in loader.stats())
    print(json.dumps({"seen": seen, "hits": hits, "pid": _peers._server.pid,
                      "own": _peers._server.name, "all": _peers._names}), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def at():
    """A command prefix that runs in node i."""
    if os.geteuid() != 0:
        pytest.skip("each node is a network namespace, and to make one takes root")
    for program, package in (("ip", "iproute2"), ("memcached", "memcached")):
        if shutil.which(program) is None:
            pytest.skip(f"each node runs {program}, which is missing: apt install {package}")
    pytest.importorskip("torch", reason="torch is missing: pip install torch")
    with contextlib.ExitStack() as stack:
        try:
            enter = stack.enter_context(network(NODES, f"leat-peers-{os.getpid()}-"))
        except subprocess.CalledProcessError as error:
            pytest.skip("each node is a network namespace, and this machine lets root make none "
                        f"(a container without CAP_NET_ADMIN?): {error.stderr.strip()}")  # fmt: skip
        yield enter


@contextlib.contextmanager
def _started(words, **options):
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def _start_rank(at, node, script, endpoint):
    environment = {
        **os.environ, "RANK": str(node), "WORLD_SIZE": str(NODES), "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": address(0), "MASTER_PORT": "29500",
        "GLOO_SOCKET_IFNAME": DEVICE,
    }  # fmt: skip
    environment.pop("LEAT_PEER_ADDRESS", None)
    return _started(
        [*at(node), sys.executable, str(script), "s3://data/train", endpoint],
        env=environment, stdin=subprocess.PIPE,
    )  # fmt: skip


def _servers_in(at, node):
    def name_of(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            return ""  # It has just ended.

    pids = run("ip", "netns", "pids", at(node)[3]).split()
    return [pid for pid in pids if name_of(pid) == "memcached"]


def test_each_node_lends_its_memory_and_the_bucket_is_read_once(at, tmp_path):
    folder = tmp_path / "buckets" / "data" / "train"
    folder.mkdir(parents=True)
    for i in range(SAMPLES):
        (folder / f"{i:03}.bin").write_bytes(bytes([i]) * 3000)
    script = tmp_path / "rank.py"
    script.write_text(textwrap.dedent(RANK))
    bucket = [*at(NODES), find_binary(), "bucket", str(tmp_path / "buckets"), "--host", HUB, "--no-credentials", "--latency", "1ms"]
    with contextlib.ExitStack() as stack:
        serving = stack.enter_context(_started(bucket))
        endpoint = serving.stdout.readline().split()[-1]
        ranks = [stack.enter_context(_start_rank(at, node, script, endpoint)) for node in range(NODES)]
        said = [json.loads(rank.stdout.readline()) for rank in ranks]
        counted = [*at(NODES), sys.executable, "-c",
                   f"import urllib.request as r; print(r.urlopen('{endpoint}/_leat/counters').read().decode())"]  # fmt: skip
        gets = json.loads(run(*counted))["get"]

        # One on each node, at its address in the job's network; all know both.
        names = [one["own"] for one in said]
        for node, one in enumerate(said):
            assert one["own"].rpartition(":")[0] == address(node)
            assert one["all"] == names
            assert _servers_in(at, node) == [str(one["pid"])]
        for epoch in range(EPOCHS):
            assert sorted(said[0]["seen"][epoch] + said[1]["seen"][epoch]) == list(range(SAMPLES))
        assert gets == SAMPLES
        assert sum(one["hits"] for one in said) == (EPOCHS - 1) * SAMPLES
        assert all(one["hits"] > 0 for one in said)

        # One node ends as it should, and one is killed: neither leaves a server.
        ranks[0].stdin.close()
        ranks[0].wait()
        ranks[1].kill()
        ranks[1].wait()
        for node in range(NODES):
            while _servers_in(at, node):  # The test's alarm ends it.
                time.sleep(0.01)
