"""How the nodes of a job find each other's memory.

The first process of each node starts a memcached, which ends with that process. Its address
goes to the others through the store of torch.distributed: every rank writes the server that
it has started, rank 0 collects them, and every rank reads the list. The secret with which ranks
seal what they keep there goes the same way.
"""

from __future__ import annotations

import atexit
import datetime
import json
import os
import secrets
import socket
from typing import Any

from leat import _native
from leat._job._agreement import job_store
from leat.errors import InvalidArgument, Unavailable

# The server of this process, kept alive by this reference, and the names of all
# of the job's.
_server: Any | None = None
_names: list[str] | None = None
_owner: int | None = None  # The process that found them: not a forked child.

# The secret of a job of one process.
_secret = secrets.token_hex(16)

_LOOPBACK = "127.0.0.1"
_PATIENCE = datetime.timedelta(seconds=120)


def find_peers(world_size: int | None, memory: str | None) -> list[str]:
    """The servers of the job, one on each node; starts this node's server if this process
    is its first.

    They belong to the job: a second loader gets the same servers. Blocks until every rank
    has called this.
    """
    global _server, _names, _owner
    if _names is not None and _owner == os.getpid():
        return _names
    launched_size, local_rank, local_size = _native.launched()
    world_size = launched_size if world_size is None else world_size
    store = job_store(world_size) if world_size > 1 else None
    if store is None and world_size > 1:
        raise InvalidArgument(
            'peers="auto" finds the other nodes through torch.distributed, which does '
            "not run here with as many ranks as the loader has: call "
            "torch.distributed.init_process_group() first, or name servers that run, "
            'peers=["host:port", ...]'
        )
    if local_rank == 0 or store is None:
        try:
            address = _LOOPBACK if world_size <= local_size else _own_address()
            _server = _native.PeerServer(address, memory, world_size)
        except BaseException:
            if store is not None:  # Nobody is to wait for it.
                _exchange(store, world_size, "")
            raise
        atexit.register(_end)
    own = "" if _server is None else _server.name
    _names = [own] if store is None else _exchange(store, world_size, own)
    _owner = os.getpid()
    return _names


def find_secret(world_size: int | None, are_ours: bool) -> str:
    """The secret that only the job's ranks know; "" where they have no way to share one.

    The first rank that asks makes it. `are_ours`: the job has started the servers.
    """
    if os.environ.get("LEAT_PEER_SECRET"):
        return ""  # The engine takes that.
    world_size = _native.launched()[0] if world_size is None else world_size
    if world_size == 1:
        return _secret if are_ours else ""
    store = job_store(world_size)
    if store is None:
        return ""
    return store.compare_set("leat/peer-secret", "", _secret).decode()


def _exchange(store: Any, world_size: int, own: str) -> list[str]:
    import torch.distributed

    rank = torch.distributed.get_rank()
    store.set(f"leat/peers/{rank}", own)
    try:
        if rank == 0:
            keys = [f"leat/peers/{other}" for other in range(world_size)]
            store.wait(keys, _PATIENCE)
            names = [store.get(key).decode() for key in keys]
            store.set("leat/peers", json.dumps([name for name in names if name]))
        store.wait(["leat/peers"], _PATIENCE)
        return json.loads(store.get("leat/peers"))
    except RuntimeError as error:  # torch raises this when time is up.
        raise Unavailable(
            'peers="auto": not every rank has made a loader with it within '
            f"{_PATIENCE.seconds} s ({error}); give all ranks the same cache="
        ) from None


def _own_address() -> str:
    """The address by which this node reaches the job's network."""
    given = os.environ.get("LEAT_PEER_ADDRESS")
    if given:
        return given
    master = os.environ.get("MASTER_ADDR", "")
    try:
        address = _address_towards(master)
    except OSError as error:
        raise Unavailable(
            f'peers="auto": there is no way to MASTER_ADDR={master!r} ({error}); set '
            "LEAT_PEER_ADDRESS on each node to its address in the job's network"
        ) from None
    if address.startswith("127.") or address == "::1":
        raise Unavailable(
            f'peers="auto": MASTER_ADDR={master!r} is {address} here, which other '
            "nodes cannot reach; set LEAT_PEER_ADDRESS on this node to its address in "
            "the job's network"
        )
    return address


def _address_towards(host: str) -> str:
    family, kind, protocol, _, where = socket.getaddrinfo(
        host, 1, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(where)  # A datagram socket: nothing is sent.
        return probe.getsockname()[0]


def _end() -> None:
    global _server
    if _owner == os.getpid():
        _server = None
