"""One rank of bench/links_bench.py: measures the steps of networks of several shapes,
alone and joined.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=… MASTER_PORT=… links_training.py STEPS DEPTHxWIDTH …

Rank 0 prints a JSON object for each: seconds of a step alone and joined, the bytes of its
gradients, and the buckets in which DistributedDataParallel reduced them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WARMUP = 3  # DistributedDataParallel makes its buckets anew after the first step.
BATCH = 4
BUCKET_MEGABYTES = 0.001  # A bucket for each layer, as if each were exchanged by itself.


def network(depth: int, width: int) -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU()) for _ in range(depth)))


def seconds_a_step(model: nn.Module, width: int, steps: int) -> float:
    """The median, of the slowest rank."""
    inputs = torch.randn(BATCH, width)
    took = []
    for _ in range(WARMUP + steps):
        dist.barrier()
        begin = time.perf_counter()
        model(inputs).square().mean().backward()
        took.append(time.perf_counter() - begin)
    slowest = torch.tensor(statistics.median(took[WARMUP:]))
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    return float(slowest)


def measured(depth: int, width: int, steps: int) -> dict[str, Any]:
    model = network(depth, width)
    alone = seconds_a_step(model, width, steps)
    model.zero_grad()
    joined = DistributedDataParallel(model, bucket_cap_mb=BUCKET_MEGABYTES)
    together = seconds_a_step(joined, width, steps)
    told = joined._get_ddp_logging_data()  # As the profiler asks it.
    sizes = str(told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes"))
    return {
        "depth": depth, "width": width, "alone": alone, "joined": together,
        "bytes": sum(p.numel() * p.element_size() for p in model.parameters()),
        "buckets": len([one for one in sizes.split(",") if one.strip()]),
    }  # fmt: skip


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    steps = int(sys.argv[1])
    for shape in sys.argv[2:]:
        depth, width = map(int, shape.split("x"))
        told = measured(depth, width, steps)
        if dist.get_rank() == 0:
            print(json.dumps(told), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
