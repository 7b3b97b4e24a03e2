"""A training each part of which is a sleep, so that the truth is known.

    profiled_training.py FOLDER --fetch 3 --decode 2 --compute 20 ...   (milliseconds)

`fetch` is what a sample's file takes that is not in the page cache, `decode` what
each sample takes; `compute` a step; `interconnect` a step of several processes on
a node, `network` a step of several nodes. With `--late-rank` that one alone fetches
so slowly. It writes what a script writes: a checkpoint, a log, and more in `finally`
and at exit.

Its sleeps are only as long as they say if it runs at once when they end. If the system
allows it, it therefore goes before all that is not real-time. The real time of each
piece is appended to the file that `--pieces` names, with the rank behind it, a line
each: "begin" of a run, "fetch", "decode", "wait" (the time in `next()` as a timer in
the script sees it), "compute", "interconnect", "network", and "exchange", the
all-reduce behind them.
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


class Pieces:
    """Writes down what pieces of the work took. At once: the process may end in any of them."""

    def __init__(self, path):
        rank = os.environ.get("RANK", "0")
        self.file = os.open(f"{path}{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if path else None
        self.write("begin", 0)

    @contextlib.contextmanager
    def took(self, name):
        begin = time.perf_counter()
        yield
        self.write(name, time.perf_counter() - begin)

    def write(self, name, seconds):
        if self.file is not None:
            os.write(self.file, f"{name} {seconds:.9f}\n".encode())


class Files(Dataset):
    def __init__(self, folder, fetch, decode, pieces):
        self.files = sorted(pathlib.Path(folder).iterdir())
        self.fetch, self.decode, self.pieces = fetch, decode, pieces

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        data = bytearray(1024)
        file = os.open(self.files[index], os.O_RDONLY)
        try:
            os.preadv(file, [data], 0, os.RWF_NOWAIT)
        except BlockingIOError:  # Not in the page cache.
            with self.pieces.took("fetch"):
                time.sleep(self.fetch / 1e3)
                os.preadv(file, [data], 0)
        os.close(file)
        with self.pieces.took("decode"):
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
    parser.add_argument("--steps", type=int, help="after which it ends")
    parser.add_argument("--late-rank", type=int)
    parser.add_argument("--pieces")
    args = parser.parse_args()

    torch.set_num_threads(1)
    with contextlib.suppress(PermissionError):  # And so will workers and gloo's threads.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    if WORLD_SIZE > 1:
        torch.distributed.init_process_group("gloo")
    is_late = args.late_rank in (None, int(os.environ.get("RANK", "0")))
    pieces = Pieces(args.pieces)
    data = Files(args.folder, args.fetch if is_late else 0, args.decode, pieces)
    sampler = DistributedSampler(data) if WORLD_SIZE > 1 else None
    loader = DataLoader(data, batch_size=args.batch, sampler=sampler, drop_last=True,
                        num_workers=args.workers)  # fmt: skip
    held_out = DataLoader(data, batch_size=args.batch)
    model = torch.nn.Linear(1, 1)
    together = torch.zeros(1)

    with torch.no_grad():  # A batch that is not trained on is not a step.
        for number, _ in enumerate(held_out):
            if number == 3:
                break
    steps = 0
    for epoch in range(args.epochs):
        asked = time.perf_counter()
        for _, _ in loader:
            pieces.write("wait", time.perf_counter() - asked)
            if steps == args.steps:
                return
            steps += 1
            with pieces.took("compute"):
                time.sleep(args.compute / 1e3)
                model(together).sum().backward()
                pathlib.Path("checkpoint").write_text(f"epoch {epoch}")
            if LOCAL_WORLD_SIZE > 1:
                with pieces.took("interconnect"):
                    time.sleep(args.interconnect / 1e3)
            if WORLD_SIZE > LOCAL_WORLD_SIZE:
                with pieces.took("network"):
                    time.sleep(args.network / 1e3)
            if WORLD_SIZE > 1:
                with pieces.took("exchange"):
                    torch.distributed.all_reduce(together)
            asked = time.perf_counter()


if __name__ == "__main__":
    atexit.register(lambda: pathlib.Path("at_exit").touch())
    try:
        main()
    finally:
        pathlib.Path("finally").touch()
