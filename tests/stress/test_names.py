"""Names cannot be looked up for a while, and a name that gets another address."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from unwell_bucket import Comings

NAME = "store.test"
WITHIN = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
MOUNT = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"'
RUN = """
import sys
import leat

loader = leat.Loader(
    "s3://objects", batch_size=20, shuffle=True, seed=3, epochs=1, output="numpy", max_in_flight=8,
    storage_options={"endpoint_url": sys.argv[1], "no_sign_request": True},
)
batches = iter(loader)
for _ in range(3):
    next(batches)
print("begun", flush=True)
sys.stdin.readline()
for _batch in batches:
    pass
print(loader.stats()[0]["content_hash"])
"""


@pytest.fixture
def names(tmp_path):
    """names.hosts and names.servers: files that stand for those of /etc, which are written in place."""
    hosts, servers = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text("")
    servers.write_text("nameserver 127.0.0.1\n")  # Nobody is there.
    tried = subprocess.run(
        [*WITHIN, MOUNT, "sh", str(hosts), str(servers), "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode != 0:
        pytest.skip(f"needs `unshare --user --mount`, for an /etc/hosts of its own: {tried.stderr.strip()}")
    return hosts, servers


@contextlib.contextmanager
def reading(names, port):
    """A process that has read three batches, and reads the others once it is told to."""
    process = subprocess.Popen(
        [*WITHIN, MOUNT, "sh", *(str(path) for path in names), sys.executable, "-c", RUN, f"http://{NAME}:{port}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert line == "begun\n", process.communicate()
        yield process
    finally:
        process.kill()
        process.communicate()


def content_of(process) -> str:
    told, errors = process.communicate("go\n", timeout=100)
    assert process.returncode == 0, errors
    return told.strip()


@contextlib.contextmanager
def served(folder, host):
    bucket = Comings(folder, "--latency", "20ms", "--name", NAME, host=host)
    bucket.begin()
    try:
        yield bucket
    finally:
        bucket.end()


def test_known_addresses_are_used_while_names_cannot_be_looked_up(objects, fresh_cache, right, names):
    hosts, _ = names
    with served(objects.parent, "127.0.0.1") as bucket:
        hosts.write_text(f"127.0.0.1 {NAME}\n")
        with reading(names, bucket.port) as process:
            hosts.write_text("")
            # All connections end: new ones need an address.
            bucket.end()
            bucket.begin()
            assert content_of(process) == right


def test_a_name_that_gets_another_address(objects, fresh_cache, right, names):
    hosts, _ = names
    with served(objects.parent, "127.0.0.2") as first:
        hosts.write_text(f"127.0.0.2 {NAME}\n")
        with reading(names, first.port) as process:
            first.end()
            second = Comings(
                objects.parent, "--latency", "20ms", "--name", NAME, host="127.0.0.3", port=first.port
            )
            second.begin()
            try:
                hosts.write_text(f"127.0.0.3 {NAME}\n")
                assert content_of(process) == right
                assert second.counters()["get"] > 300
            finally:
                second.end()
