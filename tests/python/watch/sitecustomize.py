"""Writes down which samples a program's loaders deliver; the program does not notice.

Python imports this in every process that has this folder in PYTHONPATH. Each pass
over a dataset becomes lines of JSON in a file of the process, in LEAT_TEST_WATCH:
what is read, the number of the pass, and the samples of one batch.
"""

import json
import os
import pathlib

if folder := os.environ.get("LEAT_TEST_WATCH"):
    from leat import _native

    own_file = pathlib.Path(folder) / f"{os.getpid()}.jsonl"

    def write(**line):
        with own_file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    class WatchedLoader(_native.Loader):
        """Asks for `index` besides, and keeps it to itself."""

        made = 0

        def __init__(self, dataset, options):
            WatchedLoader.made += 1
            self.number = WatchedLoader.made
            self.url = dataset.url
            self.asked = options["fields"]
            extra = ["index"] if self.asked and "index" not in self.asked else []
            super().__init__(dataset, {**options, "fields": [*self.asked, *extra]})

        def next(self, iteration):
            batch = super().next(iteration)
            if batch is None:
                return None
            named = dict(batch)
            ids = named["index"].tolist()
            if "valid" in named:
                ids = [i for i, valid in zip(ids, named["valid"]) if valid]
            write(source=self.url, number=[self.number, iteration], ids=ids)
            return [(name, value) for name, value in batch if name != "index" or "index" in self.asked]

    _native.Loader = WatchedLoader

    if os.environ.get("LEAT_TEST_WATCH_DROPIN"):
        from leat.torch import batch as batches

        passes = [0]
        take = batches.Batch.take

        def watched_take(batch):
            value = take(batch)
            passes[0] += batch.number == 0
            write(source="drop-in", number=[0, passes[0]], ids=list(batch.index))
            return value

        batches.Batch.take = watched_take
