"""Processes of one data rank on one node: what it saves to decode once for all of them.

    ./dev bench mesh [--runs 5] [--photographs 1024] [--processes 4] [--quick] [--json]

Tensor parallel processes read the same photographs of 37 KB (500 x 375), 20 ms away, in the same steps: decode, random
crop to 224, flip, normalise; two epochs. `alone` is one process. `shared` is what a mesh does by itself: one of them
makes each batch, and the others map it. With `each` every process makes its own, of bytes in a cache that they share;
`pixels` keeps decoded pixels there.
How to read it: `samples_per_s` is the rate of steps times their size, over all processes, which meet in each step;
`cpu_ms` is the time of cores that all processes took for a sample, `gets` what the server counted for one.
Each run proves that all processes had the same batches.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import leat.testing
from grainy_photographs import SHAPES, make
from measure import interleave, report, spread

BATCH, EPOCHS = 64, 2
WAYS = {
    # Whether batches are shared, and the cache.
    "alone": ("True", "None"), "shared": ("True", "None"), "each": ("False", "None"),
    "pixels": ("False", 'leat.Cache(ram=RAM, form="decoded")'),
}

PROGRAM = """
import json, sys, time, zlib
import torch.distributed as dist
import leat
RAM = int(sys.argv[2])
dist.init_process_group("gloo")
mesh = leat.Mesh({"dp": 1, "tp": dist.get_world_size()}, shares_batches=SHARES)
ops = [leat.ops.DecodeImage(), leat.ops.RandomResizedCrop(224), leat.ops.RandomHorizontalFlip(), leat.ops.Normalize("imagenet")]
said, samples = 0, 0
with leat.Loader("s3://photographs", global_batch_size=%d, train=True, rank=mesh, ops=ops, fields=("image",), cache=CACHE,
                 output="numpy", epochs=%d, storage_options={"no_sign_request": True}) as loader:
    dist.barrier()
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(%d):
        for (images,) in loader:
            samples += len(images)
            said = zlib.adler32(images[:, :, ::16, ::16].tobytes(), said)
            dist.barrier()
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    dist.barrier()
print(json.dumps({"seconds": seconds, "cpu": cpu, "samples": samples, "said": said}))
dist.destroy_process_group()
""" % (BATCH, EPOCHS, EPOCHS)


def run_job(bucket: leat.testing.Bucket, way: str, processes: int, ram: int) -> dict[str, float]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    count = 1 if way == "alone" else processes
    bucket.reset_counters()
    shares, cache = WAYS[way]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("SHARES", shares).replace("CACHE", cache), "-", str(ram)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, **bucket.env(), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": str(number),
                 "WORLD_SIZE": str(count), "LOCAL_RANK": str(number), "LOCAL_WORLD_SIZE": str(count),
                 "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        )
        for number in range(count)
    ]  # fmt: skip
    said = [json.loads(process.communicate()[0]) for process in running]
    if len({(each["said"], each["samples"]) for each in said}) != 1:
        sys.exit(f"{way}: processes of one rank had different batches")
    samples = said[0]["samples"]
    return {
        "samples_per_s": samples / max(each["seconds"] for each in said),
        "cpu_ms": 1e3 * sum(each["cpu"] for each in said) / samples,
        "gets": bucket.counters()["get"] / samples,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--photographs", type=int, default=1024)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="one run, few photographs: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    count = 128 if args.quick else args.photographs
    shape = SHAPES["smooth"]
    with tempfile.TemporaryDirectory(prefix="leat-mesh-") as root:
        make(pathlib.Path(root) / "photographs", shape, count)
        with leat.testing.Bucket(pathlib.Path(root), latency="20ms") as bucket:
            os.environ["LEAT_CACHE_DIR"] = str(pathlib.Path(root) / "cache")
            # As a mesh has by itself: room for all that lies between the fastest and the slowest process.
            ram = 256 << 20
            run_job(bucket, "alone", 1, ram)
            ways = {way: lambda way=way: run_job(bucket, way, args.processes, ram) for way in WAYS}
            found = interleave(ways, 1 if args.quick else args.runs)
    rows = []
    for way, values in found.items():
        rate, mad = spread(values["samples_per_s"])
        rows.append({"way": way, "samples_per_s": rate, "mad": mad, "cpu_ms": spread(values["cpu_ms"])[0], "gets": f"{spread(values['gets'])[0]:.2f}"})
    report(f"{args.processes} processes of one rank, {count} photographs", rows, args.json)


if __name__ == "__main__":
    main()
