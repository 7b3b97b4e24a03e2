"""A training each part of which is a sleep, so that the truth is known.

    profiled_training.py FOLDER --fetch 3 --decode 2 --compute 20 ...   (milliseconds)

`fetch` is what a sample's file takes that is not in the page cache, `decode` what
each sample takes; `compute` a step; `interconnect` a step of several processes on
a node, `network` a step of several nodes. It writes what a script writes:
a checkpoint, a log, and more in `finally` and at exit.

Its sleeps are only as long as they say if it runs at once when they end. Where
that is allowed, it therefore goes before all that is not real-time.
"""

import argparse
import atexit
import contextlib
import os
import pathlib
import time

import torch
import torch.distributed
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "1"))
LOCAL_WORLD_SIZE = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


class Files(Dataset):
    def __init__(self, folder, fetch, decode):
        self.files = sorted(pathlib.Path(folder).iterdir())
        self.fetch, self.decode = fetch, decode

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        data = bytearray(1024)
        file = os.open(self.files[index], os.O_RDONLY)
        try:
            os.preadv(file, [data], 0, os.RWF_NOWAIT)
        except BlockingIOError:  # Not in the page cache.
            time.sleep(self.fetch / 1e3)
            os.preadv(file, [data], 0)
        os.close(file)
        time.sleep(self.decode / 1e3)
        return torch.frombuffer(data, dtype=torch.uint8), index


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name in ("fetch", "decode", "compute", "interconnect", "network"):
        parser.add_argument(f"--{name}", type=float, default=0)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    torch.set_num_threads(1)
    with contextlib.suppress(PermissionError):  # And so will workers and gloo's threads.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    if WORLD_SIZE > 1:
        torch.distributed.init_process_group("gloo")
    data = Files(args.folder, args.fetch, args.decode)
    sampler = DistributedSampler(data) if WORLD_SIZE > 1 else None
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, drop_last=True,
                        num_workers=args.workers)  # fmt: skip
    held_out = DataLoader(data, batch_size=args.batch)
    model = torch.nn.Linear(1, 1)
    together = torch.zeros(1)

    with torch.no_grad():  # What is not trained on is not a step.
        for number, _ in enumerate(held_out):
            if number == 3:
                break
    for epoch in range(args.epochs):
        for _, _ in loader:
            time.sleep(args.compute / 1e3)
            model(together).sum().backward()
            if LOCAL_WORLD_SIZE > 1:
                time.sleep(args.interconnect / 1e3)
            if WORLD_SIZE > LOCAL_WORLD_SIZE:
                time.sleep(args.network / 1e3)
            if WORLD_SIZE > 1:
                torch.distributed.all_reduce(together)
            pathlib.Path("checkpoint").write_text(f"epoch {epoch}")


if __name__ == "__main__":
    atexit.register(lambda: pathlib.Path("at_exit").touch())
    try:
        main()
    finally:
        pathlib.Path("finally").touch()
