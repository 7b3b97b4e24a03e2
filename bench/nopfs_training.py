"""One rank of bench/nopfs_bench.py: trains in step with the others, by sleeping.

    nopfs_training.py '{"meeting": "socket", "step": 0.06, "steps": 160, "loader": {...} or null}'

A step begins when the last rank has its batch, as where gradients are summed. The ranks
meet at a socket of the file system, which is no part of the network between them. Prints
one JSON object: seconds from the first meeting to the end of the last step, and what
`loader.stats()` says of each epoch. Without a loader it takes this many steps.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import leat


@contextlib.contextmanager
def meeting(path: str, ranks: int) -> Iterator[None]:
    """A barrier, until it is left: each that comes waits for all. One that is gone
    ends it."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(ranks)

        def meet() -> None:
            with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                joined = [stack.enter_context(server.accept()[0]) for _ in range(ranks)]
                while all(rank.recv(1) for rank in joined):
                    for rank in joined:
                        rank.sendall(b".")

        thread = threading.Thread(target=meet, daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            os.unlink(path)


class Rank:
    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)

    def meet(self) -> None:
        self._socket.sendall(b".")
        if not self._socket.recv(1):
            sys.exit("another rank is gone")


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    rank = Rank(job["meeting"])
    loader = None
    if job["loader"] is not None:
        cache = job["loader"].pop("cache")
        url = job["loader"].pop("url")
        loader = leat.research.Loader(url, shuffle=True, **job["loader"], cache=leat.Cache(**cache) if cache else None)
    rank.meet()
    began = time.perf_counter()
    if loader is None:
        for _ in range(job["steps"]):
            rank.meet()
            time.sleep(job["step"])
    else:
        for _ in range(job["loader"]["epochs"]):
            for _ in loader:
                rank.meet()
                time.sleep(job["step"])
    print(json.dumps({"seconds": time.perf_counter() - began, "epochs": loader.stats() if loader else []}))


if __name__ == "__main__":
    main()
