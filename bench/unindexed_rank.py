"""One rank of `./dev bench shards --unindexed`: a loader of a job that torch.distributed joins.

    RANK=0 WORLD_SIZE=2 … python bench/unindexed_rank.py URL STORE SHUFFLE WINDOW

Prints one line of JSON: seconds from the moment at which all ranks open to the first batch and to the end,
samples, and the content hash. With ``-`` in the place of STORE the ranks share none.
"""

from __future__ import annotations

import json
import os
import sys
import time

import leat


def main() -> None:
    url, store, shuffle, window = sys.argv[1:]
    barrier = None
    if store != "-":
        import torch.distributed

        rank, ranks = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
        barrier = torch.distributed.barrier
        barrier()
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.monotonic()
    options = {"batch_size": 32, "epochs": 1, "seed": 0, "drop_last": "join", "memory": "256MiB"}
    order = leat.Shuffle(shuffle, int(window)) if shuffle == "stream" else True
    with leat.Loader(url, shuffle=order, storage_options={"no_sign_request": True}, **options) as loader:
        first = None
        for _ in loader:
            first = first or time.monotonic() - begin
        seconds = time.monotonic() - begin
        epoch = loader.stats()[0]
        if barrier is not None:
            barrier()
    told = {"first_batch_s": first, "seconds": seconds, "samples": epoch["samples"], "content": epoch["content_hash"]}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
