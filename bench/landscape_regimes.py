"""The regimes of bench/landscape_bench.py: what is read, from where, and what is measured, as a table of values."""

from __future__ import annotations

from typing import NamedTuple


class Data(NamedTuple):
    """A dataset that is made once: `samples` of `size` bytes each. Sample i of bytes begins with i in 8 bytes."""

    kind: str  # "objects", "jpegs", "tokens" or "many"
    samples: int
    size: int
    shard: int = 16_000_000  # Bytes of a shard or chunk, in formats that have them.

    @property
    def is_small(self) -> bool:
        """Samples are hashed as rows of an array; else each by XXH3."""
        return self.size <= 512


class Regime(NamedTuple):
    about: str  # As the page's title says it.
    data: str
    batch: int
    task: str = "bytes"  # or "pixels", "function", "tokens"
    store: str = "bucket"  # or "files"
    form: str = "raw"  # How the data lies for those that read it where it lies: "raw", "tar" or "bin".
    figure: str = "rate"  # "first": seconds to the first batch; "resume": the same, in the middle of an epoch.
    epochs: int = 1  # The last one is measured.
    ranks: int = 1
    step: float = 0.0  # Seconds that training sleeps, a batch.
    fixed: int | None = None  # This many workers, instead of the best of a sweep: the study's grid.
    keep: float = 1.0  # The share of samples that a filter on their number keeps.
    nobody_wins: bool = False

    @property
    def is_better_low(self) -> bool:
        return self.figure != "rate"


DATA = {
    "objects-4k": Data("objects", 40_960, 4_096),
    "objects-111k": Data("objects", 10_240, 111_000),
    "objects-8m": Data("objects", 320, 8_000_000, shard=64_000_000),
    "samples-100": Data("objects", 655_360, 100),
    "jpegs": Data("jpegs", 2_560, 111_000),
    "tokens": Data("tokens", 65_536, 2_048, shard=64_000_000),
    "many": Data("many", 100_000, 4_096),
    "study": Data("objects", 7_680, 16_000),
    "quick": Data("objects", 256, 4_096, shard=250_000),
    "quick-100": Data("objects", 4_096, 100, shard=250_000),
    "quick-jpegs": Data("jpegs", 64, 111_000, shard=1_000_000),
    "quick-tokens": Data("tokens", 512, 2_048, shard=1_000_000),
    "quick-many": Data("many", 1_000, 4_096),
}

REGIMES = {
    "objects-4k": Regime("Objects of 4 KB from a bucket", "objects-4k", 64),
    "objects-111k": Regime("Objects of 111 KB from a bucket", "objects-111k", 16),
    "objects-8m": Regime("Objects of 8 MB from a bucket", "objects-8m", 2),
    "files-111k": Regime("Files of 111 KB, local", "objects-111k", 16, store="files"),
    "jpegs": Regime("JPEGs from a bucket: decode, random crop, normalise", "jpegs", 16, task="pixels"),
    "jpegs-files": Regime("The same of local files", "jpegs", 16, task="pixels", store="files"),
    "shards-raw": Regime("Tar shards of 111 KB samples from a bucket", "objects-111k", 16, form="tar"),
    "shards-jpegs": Regime("Tar shards of JPEGs from a bucket, decoded", "jpegs", 16, task="pixels", form="tar"),
    "samples-100": Regime("Samples of 100 bytes, in shards, from a bucket", "samples-100", 1024, form="tar"),
    **{
        f"tokens-{ranks}": Regime(
            f"Windows of 1,024 tokens from a bucket, {ranks} rank{'s' * (ranks > 1)}",
            "tokens",
            64 // ranks,
            task="tokens",
            form="bin",
            ranks=ranks,
        )
        for ranks in (1, 2, 8)
    },
    "function": Regime(
        "A transform that holds the GIL for 3 ms; local files", "jpegs", 16, task="function", store="files"
    ),
    "second-epoch": Regime("The second epoch of 111 KB objects, with each one's cache", "objects-111k", 16, epochs=2),
    "first-batch": Regime("Seconds to the first batch of 100,000 objects", "many", 64, figure="first"),
    "resume": Regime("Seconds to the next batch after a stop in the middle", "objects-111k", 16, figure="resume"),
    "compute-bound": Regime(
        "Training computes for longer than loading takes", "objects-4k", 64, step=0.05, nobody_wins=True, store="files"
    ),
    **{
        f"study-{name}-{workers}x{batch}": Regime(
            f"The study's {name}: {workers} workers, batches of {batch}", "study", batch, fixed=workers, **more
        )
        for name, more in (
            ("default", {"store": "files"}),
            ("distributed", {"store": "files", "ranks": 2}),
            ("filtered", {"store": "files", "keep": 0.5}),
        )
        for workers in (0, 1, 2)
        for batch in (16, 64, 128)
    },
    "study-remote": Regime("The study's remote: 0 workers, batches of 64, two epochs", "study", 64, fixed=0, epochs=2),
}

# Tiny ones: do the adapters work? `--quick` runs the first two, and others by name.
QUICK = {
    "quick-objects": Regime("Objects of 4 KB from a bucket, tiny", "quick", 16),
    "quick-files": Regime("Files of 4 KB, tiny", "quick", 16, store="files"),
    "quick-shards": Regime("Tar shards, tiny", "quick", 16, form="tar"),
    "quick-pixels": Regime("JPEGs, tiny", "quick-jpegs", 8, task="pixels"),
    "quick-pixels-files": Regime("JPEGs, local, tiny", "quick-jpegs", 8, task="pixels", store="files"),
    "quick-shards-pixels": Regime("Tar shards of JPEGs, tiny", "quick-jpegs", 8, task="pixels", form="tar"),
    "quick-100": Regime("Samples of 100 bytes, tiny", "quick-100", 256, form="tar"),
    "quick-tokens": Regime("Windows of tokens, 1 rank, tiny", "quick-tokens", 16, task="tokens", form="bin"),
    "quick-tokens-2": Regime(
        "Windows of tokens, 2 ranks, tiny", "quick-tokens", 16, task="tokens", form="bin", ranks=2
    ),
    "quick-ranks": Regime("Files by 2 ranks, tiny", "quick", 16, store="files", ranks=2),
    "quick-function": Regime("A function, tiny", "quick-jpegs", 8, task="function", store="files"),
    "quick-second": Regime("A second epoch, tiny", "quick", 16, epochs=2),
    "quick-first": Regime("The first batch of 1,000, tiny", "quick-many", 16, figure="first"),
    "quick-resume": Regime("Going on, tiny", "quick", 16, figure="resume"),
    "quick-filtered": Regime("A filter, tiny", "quick", 16, store="files", keep=0.5),
}
QUICK_USUAL = ("quick-objects", "quick-files")
