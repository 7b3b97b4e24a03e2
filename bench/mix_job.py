"""One rank of a job of bench/mix_bench.py: a real loader, and training that sleeps.

The job comes as a JSON object in MIX_JOB. The process reports in one line on stdout. If
the object names a file, `progress`, that file always has the samples so far and their
time.
"""

from __future__ import annotations

import json
import os
import struct
import time

import leat


def main() -> None:
    job = json.loads(os.environ["MIX_JOB"])
    ranks = int(os.environ["WORLD_SIZE"])
    if ranks > 1:
        import torch.distributed as dist

        dist.init_process_group("gloo")
    progress = os.open(job["progress"], os.O_WRONLY | os.O_CREAT) if "progress" in job else None
    ops = [leat.ops.DecodeImage(), leat.ops.Resize(job["resize"])] if "picture" in job else []
    with leat.Loader(
        f"s3://{job['name']}", global_batch_size=job["batch"], shuffle=True, seed=11, ops=ops, drop_last=True,
        storage_options={"region": "us-east-1", "no_sign_request": True}, epochs=job["epochs"],
        max_in_flight=job["max_in_flight"], memory="128MiB",
    ) as loader:  # fmt: skip
        began = time.time()
        done = 0
        for _ in range(job["epochs"]):
            for _ in loader:
                time.sleep(job.get("step", 0))
                if ranks > 1:
                    dist.barrier()
                done += job["batch"]
                if progress is not None:
                    os.pwrite(progress, struct.pack("qd", done, time.time()), 0)
        ended = time.time()
        epochs = loader.stats()
    print(json.dumps({
        "job": job["name"], "began": began, "ended": ended,
        "samples": sum(epoch["samples"] for epoch in epochs),
        "content": [epoch["content_hash"] for epoch in epochs],
        "gets": sum(epoch["requests"]["get"] for epoch in epochs),
    }))  # fmt: skip
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
