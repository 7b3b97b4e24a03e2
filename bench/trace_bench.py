"""The cost of a trace to a loader: CPU time a sample of the cheapest pipelines, with
and without.

    ./dev bench trace [--runs 5] [--samples 60000] [--json]

`leat bench --no-hash` over records of 4 KB in local tar shards, and objects of 4 KB in a
bucket on this machine, each twice in turn: as it is, and with `--trace`. CPU is of all threads of the process, as getrusage tells it, of
the second epoch, when the ten thousand samples that a trace shows first have been drawn.
Look at: `trace, us`, and `trace, %` of the CPU without it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pathlib
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator

from leat.testing import Bucket, find_binary
from measure import interleave, report, spread


def make(folder: pathlib.Path, samples: int) -> None:
    (folder / "shards").mkdir()
    (folder / "objects").mkdir()
    body = bytes(4096)
    for number in range(8):
        with tarfile.open(folder / "shards" / f"{number}.tar", "w", format=tarfile.USTAR_FORMAT) as shard:
            for sample in range(samples // 8):
                member = tarfile.TarInfo(f"{number}-{sample:06}.bin")
                member.size = len(body)
                shard.addfile(member, io.BytesIO(body))
    (folder / "objects" / "x.bin").write_bytes(body)


def cpu_of_a_sample(words: list[str], trace: pathlib.Path | None) -> dict[str, float]:
    """Microseconds, of the last of two epochs; bytes of the trace, of both."""
    more = [] if trace is None else ["--trace", str(trace)]
    done = subprocess.run(
        [find_binary(), "bench", *words, "--json", "--no-hash", "--no-tune", "--epochs", "2", "--global-batch-size", "256", *more],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    epochs = json.loads(done.stdout)["epochs"]
    told = {"cpu": 1e6 * epochs[-1]["cpu_seconds"] / epochs[-1]["samples"]}
    if trace is not None:
        told["bytes"] = trace.stat().st_size / sum(epoch["samples"] for epoch in epochs)
        trace.unlink()
    return told


@contextlib.contextmanager
def cheapest_pipelines(samples: int) -> Iterator[tuple[dict[str, list[str]], pathlib.Path]]:
    """By name, the words that `leat bench` takes for each; and a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, samples)
        with Bucket(folder, latency="0ms", repeat=f"objects/x.bin:{samples}") as bucket:
            yield {
                "records of shards, local": [str(folder / "shards")],
                "objects of a bucket": ["s3://objects", "--endpoint-url", bucket.url, "--no-sign-request"],
            }, folder


def arguments(doc: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=60_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.quick:
        args.runs, args.samples = 1, 4000
    return args


def main() -> None:
    args = arguments(__doc__)
    rows = []
    with cheapest_pipelines(args.samples) as (pipelines, folder):
        trace = folder / "t.json"
        for pipeline, words in pipelines.items():
            found = interleave(
                {"plain": lambda: cpu_of_a_sample(words, None), "traced": lambda: cpu_of_a_sample(words, trace)},
                args.runs,
            )
            plain, plain_spread = spread(found["plain"]["cpu"])
            traced, traced_spread = spread(found["traced"]["cpu"])
            rows.append({
                "pipeline": pipeline, "plain, us": plain, "+-": plain_spread, "traced, us": traced,
                "+- ": traced_spread, "trace, us": round(traced - plain, 2),
                "trace, %": 100 * (traced - plain) / plain,
                "bytes a sample": statistics.median(found["traced"]["bytes"]),
            })  # fmt: skip
    report("trace: CPU of a sample", rows, args.json)


if __name__ == "__main__":
    main()
