"""Writes down which samples a program's loaders deliver; the program does not notice.

Python imports this in every process that has this folder in PYTHONPATH. Each pass
over a dataset becomes lines of JSON in a file of the process, in LEAT_TEST_WATCH:
the data that is read, the number of the pass, and the samples of one batch.

Before it exits, such a process waits for gloo's threads. One that lets go of a
tensor while the interpreter ends aborts the process, and with DDP they live as
long as it does (pytorch/pytorch#190489).
"""

import atexit
import json
import os
import pathlib
import time


def wait_for_gloo(seconds: float = 10) -> None:
    """Returns once torch's threads for gloo were found asleep three times on end."""
    until, asleep = time.monotonic() + seconds, 0
    while asleep < 3 and time.monotonic() < until:
        stats = [task.read_text() for task in pathlib.Path("/proc/self/task").glob("*/stat")]
        states = [stat.rsplit(")", 1)[1].split()[0] for stat in stats if "(pt_gloo" in stat]
        if not states:
            return
        asleep = asleep + 1 if set(states) == {"S"} else 0
        time.sleep(0.005)  # Without the lock that they may wait for.


if folder := os.environ.get("LEAT_TEST_WATCH"):
    from leat import _native

    atexit.register(wait_for_gloo)
    own_file = pathlib.Path(folder) / f"{os.getpid()}.jsonl"

    def write(**line):
        with own_file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    class WatchedLoader(_native.Loader):
        """Asks for ids besides, and keeps them to itself."""

        made = 0

        def __init__(self, dataset, options):
            WatchedLoader.made += 1
            self.number = WatchedLoader.made
            self.url = dataset.url
            self.hidden = set() if options["ids"] else {"index", "key", "valid"} - set(options["fields"])
            super().__init__(dataset, {**options, "ids": True})

        def next(self, iteration, place):
            batch = super().next(iteration, place)
            if batch is None:
                return None
            named = dict(batch)
            ids = named["index"].tolist()
            if "valid" in named:
                ids = [i for i, valid in zip(ids, named["valid"]) if valid]
            write(source=self.url, number=[self.number, iteration], ids=ids)
            return [(name, value) for name, value in batch if name not in self.hidden]

    _native.Loader = WatchedLoader

    if os.environ.get("LEAT_TEST_WATCH_DROPIN"):
        from leat.torch import _batch as batches

        passes = [0]
        take = batches.Batch.take

        def watched_take(batch):
            value = take(batch)
            passes[0] += batch.number == 0
            write(source="drop-in", number=[0, passes[0]], ids=list(batch.index))
            return value

        batches.Batch.take = watched_take
