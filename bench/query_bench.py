#!/usr/bin/env python3
"""Queries over a dataset of 10 million samples, from SQL to sample numbers, columns made anew each time.

    bench/query_bench.py [ROWS]

Prints one JSON object: of each query the fewest seconds of three, on the clock and of the processor, and its samples.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import tempfile
import time

import leat
from leat import _query

QUERIES = {
    "numbers": "select index from samples where index % 10 = 3 and size > 1",
    "keys": "select index from samples where key like '%77'",
    "ordered": "select index from samples order by hash(index) limit 1000",
}


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        tokens = pathlib.Path(folder, "tokens.bin")
        with tokens.open("wb") as file:
            file.truncate(2 * rows)
        dataset = leat.Dataset.tokens(tokens, dtype="uint16", seq_len=1)
        told: dict[str, object] = {"rows": len(dataset)}
        for name, sql in QUERIES.items():
            clock, cpu, samples = [], [], 0
            for _ in range(3):
                begun = time.perf_counter(), time.process_time()
                samples = len(_query.samples_of(_query.run(dataset, sql), sql))
                clock.append(time.perf_counter() - begun[0])
                cpu.append(time.process_time() - begun[1])
            told[name] = {"seconds": round(min(clock), 2), "cpu_seconds": round(min(cpu), 2), "samples": samples}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
