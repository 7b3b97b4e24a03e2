"""The pages of figures, from what benches have published.

    ./dev bench NAME [options] --publish    runs one, and keeps what it found in bench/published/NAME.json
    ./dev bench --publish                   writes docs/performance.md, docs/reliability.md and, once there is
                                            a whole run, docs/landscape.md from what is kept

Each file of bench/published holds the rows of one run, its command, day, machine and commit.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).parent
PUBLISHED = HERE / "published"
PAGE = HERE.parent / "docs/performance.md"
RELIABILITY = HERE.parent / "docs/reliability.md"

Rows = list[dict[str, Any]]


class Figure(NamedTuple):
    """`tell` makes what the page says from each table that the bench of that name has published; `about` stands
    before the first of them, and then each table has its title."""

    bench: str
    title: str
    tell: Callable[[Rows], str]
    about: str = ""


def row_of(rows: Rows, way: str) -> dict[str, Any]:
    """The row of that way. Raises KeyError if there is none."""
    for row in rows:
        if row.get("way") == way:
            return row
    raise KeyError(f"no row has way = {way!r}")


def table(rows: Rows, columns: dict[str, str]) -> str:
    """The columns of these rows, as Markdown, under the heads that `columns` gives them."""

    def told(cell: Any) -> str:
        if not isinstance(cell, float):
            return str(cell)
        return f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"

    lines = ["| " + " | ".join(columns.values()) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(told(row.get(name, "")) for name in columns) + " |" for row in rows]
    return "\n".join(lines)


def tell_demo(rows: Rows) -> str:
    names = ("leat", "leat_local", "torch_best", "torch_2_workers", "no_io")
    ours, files, torch, two, none = (row_of(rows, name) for name in names)

    def rate(row: dict[str, Any]) -> str:
        return f"{row['samples_per_second']:.0f} ± {row['mad']:.0f}"

    return (
        f"Leat trains on {rate(ours)} samples a second from the bucket and waits {ours['wait_fraction']:.1%} of the time. PyTorch's "
        f"DataLoader at the best setting of a sweep trains on {rate(torch)} and waits {torch['wait_fraction']:.1%}; with two workers, on "
        f"{rate(two)}. From local files Leat trains on {rate(files)}. A loop that reads nothing trains on {rate(none)}. Within a run "
        f"Leat is {ours['of_torch_best']:.2f} ± {ours['ratio_mad']:.2f} times as fast as torch's best. All ways delivered the same pixels. "
        "The start weighs more for torch's ways, which train for 10 s, than for Leat's three epochs.\n\n"
        "![Samples a second of each way](demo.svg)"
    )


def tell_disk(rows: Rows) -> str:
    disk, bucket = row_of(rows, "disk"), row_of(rows, "bucket")
    return (
        f"Without training, the demo's photographs: {disk['samples_per_s']} a second from a folder in memory, and "
        f"{bucket['samples_per_s']} from the bucket, {bucket['of_disk']} of it. The samples were the same."
    )


def tell_fetch(rows: Rows) -> str:
    many = row_of(rows, "leat 100k 256")
    python = max((row for row in rows if row["way"].startswith("python")), key=lambda row: row["rate"])
    return (
        f"Objects of 100 KB, 20 ms away. With 256 requests in flight Leat fetches {many['rate']:,.0f} ± {many['rate_mad']:,.0f} a second, "
        f"{many['efficiency']:.0%} of 256 times as many as with one. Keep-alive threads of Python fetch at most {python['rate']:,.0f} "
        f"({python['way'].split()[-1]} threads)."
    )


def tell_ranks(rows: Rows) -> str:
    return (
        "All threads, requests and memory of one rank, divided among eight. Their order and content were verified.\n\n"
        + table(
            [{**row, "of_one_rank": f"{row['of_one_rank']:.0%}"} for row in rows],
            {"way": "", "samples_per_s": "samples/s", "mad": "±", "of_one_rank": "of one rank", "memory_mb": "MB above idle"},
        )
    )


def tell_shards(rows: Rows) -> str:
    heads = {"way": "", "samples_per_s": "samples/s", "mad": "±", "of_one": "of one rank",
             "gets_of_pieces": "GETs for each 8 MiB", "bytes_of_data": "bytes of the data"}  # fmt: skip
    return (
        "24 tar shards of 64 MB, 20 ms away behind a link of 200 MB/s. The server counted the GETs; the ranks' contents add up to "
        "the one's.\n\n" + table(rows, heads)
    )


def tell_decode(rows: Rows) -> str:
    heads = {"workers": "threads", "chain": "", "images_per_second": "images/s", "mad": "±", "to_pillow": "times Pillow's"}
    return (
        "JPEGs are decoded, cropped, resized, flipped and normalised. One thread: images a second of CPU time; two: of "
        "the clock.\n\n" + table(rows, heads)
    )


def tell_ops(rows: Rows) -> str:
    heads = {"op": "on one thread", "leat": "Leat, µs", "pillow": "torchvision, Pillow image, µs",
             "tensor": "torchvision, tensor, µs", "ratio": "times as fast"}  # fmt: skip
    chains = [row for row in rows if row["op"] in ("eight ops", "the same without the blur")]
    beside = [row["ratio"] for row in rows if row["ratio"] is not None and row not in chains]
    return (
        f"{len(beside)} ops beside the faster of torchvision's two ways: from {min(beside)} to {max(beside)} times as fast. "
        "[Each of them](reference/ops.md); two chains:\n\n" + table(chains, heads)
    )


def tell_dropin(rows: Rows) -> str:
    heads = {"way": "", "rate": "samples/s", "rate_mad": "±", "over_torch": "times torch, as many workers", "over_best": "times torch's best"}
    return (
        "A Dataset whose `__getitem__` gets one object, 110 ms away (gets), reads files, decodes pictures, or counts in Python. "
        "torch's best is of a sweep; each worker has 20 batches or more.\n\n" + table(rows, heads)
    )


ABOUT_JOBS = (
    "Jobs train at once on the same photographs, 20 ms away, each in its own order. A table's title says how many "
    "jobs, photographs and epochs there were, and the room of a row's caches. By `smooth` the room is 40 % of the size "
    "in which the pictures are kept; by `imagenet` it is 40 % of their decoded size, which flatters caches. torch's DataLoader has no cache, and as many workers as were fastest in a sweep. In every "
    "epoch the bench verified that each photograph came once, and before, by hash, that each way "
    "delivers the pixels of a loader without a cache, and torch the files' bytes. *GETs* are of all jobs and epochs."
)


def tell_jobs(rows: Rows) -> str:
    heads = {"way": "", "makespan_s": "all done after, s", "of_torch": "torch's speed", "of_apart": "the speed of caches apart",
             "gets": "GETs a photograph", "decoded": "decoded, times an epoch"}  # fmt: skip
    # A cache that chooses the form is on the benches' page.
    return table([row for row in rows if row["way"] != "apart, auto"], heads)


def tell_cache(rows: Rows) -> str:
    heads = {"tier": "tier", "bytes": "bytes of a record", "threads": "threads", "a_second": "records or bytes a second", "of_fio": "of fio"}
    return "Hits, with checksum.\n\n" + table(rows, heads)


def tell_agent(rows: Rows) -> str:
    row = rows[0]
    return (
        f"An agent that {row['jobs']} jobs report to once a second, a page, `leat top` and Prometheus looking on, takes "
        f"{row['percent_of_a_core']} ± {row['mad']} % of a core."
    )


def tell_clocks(rows: Rows) -> str:
    heads = {"pipeline": "", "calls a sample": "calls a sample", "ns a call": "ns a call", "clocks, %": "% of a sample's CPU"}
    return "The clocks are always on.\n\n" + table(rows, heads)


def tell_faults(rows: Rows) -> str:
    """One of the three tables of that bench."""
    if "fault" in rows[0]:
        heads = {"fault": "the store", "way": "", "extra_s": "extra time, s", "gets_an_object": "GETs an object",
                 "refused": "refusals for a good GET", "content": "content"}  # fmt: skip
        return (
            "3,000 objects of 4 KB, 5 ms away, 64 requests in flight. *Extra time* is beyond that of a store that is well, and beyond the "
            "fault's own: an outage lasts, and a limit takes its time. *Content* says whether all bytes came, and were right; else it "
            "is the error.\n\n" + table(rows, heads)
        )
    if "of_limit" in rows[0]:
        told = [{**row, "of_limit": f"{row['of_limit']:.0%}"} for row in rows]
        heads = {"way": "", "of_limit": "of the limit", "refused": "refusals for a good GET", "content": "content"}
        return "Each rank is a process. The time begins with the first request, before anybody knows the limit.\n\n" + table(told, heads)
    heads = {"late": "ten times late", "second_requests": "second requests", "wait_50_ms": "half of the waits, ms",
             "wait_99_ms": "1 of 100, ms", "wait_999_ms": "1 of 1,000, ms", "more_gets_percent": "second requests for 100 reads"}  # fmt: skip
    return (
        "First bytes come after lognormal times around 110 ms. The waits are those of a training of 80 ms a step for batches of 32 "
        "objects. *None* is a loader with `no_hedge`.\n\n" + table(rows, heads)
    )


FIGURES = (
    Figure("demo", "Training from a bucket 55 ms away", tell_demo),
    Figure("disk", "A bucket, and a local folder", tell_disk),
    Figure("fetch", "Requests in flight", tell_fetch),
    Figure("ranks", "One rank, and eight", tell_ranks),
    Figure("shards", "Shards, by any number of ranks", tell_shards),
    Figure("decode", "Decoding", tell_decode),
    Figure("ops", "Ops", tell_ops),
    Figure("dropin", "In the place of torch's DataLoader", tell_dropin),
    Figure("jobs", "Several trainings on one dataset", tell_jobs, ABOUT_JOBS),
    Figure("cache", "A cache", tell_cache),
    Figure("agent", "What an agent costs", tell_agent),
    Figure("clocks", "What the clocks cost", tell_clocks),
)

HEAD = """# Figures

Each figure was printed by the command below it, on the day and the machine that stand beside it. Read ratios: each is of
interleaved runs on one machine. [The benches' page](../bench/README.md) has every other figure, the sweeps, the spreads and what went
worse than hoped. Make this page anew: run the commands with `--publish`, then `./dev bench --publish`.
"""


def tell_clients(rows: Rows) -> str:
    text = (
        "Each client reads whole objects, again and again, in a process of its own, at the concurrency that was its best "
        "in a sweep; their bytes were compared with the files'. *Times the best* is the rate over that of the best of the "
        "others in the same run, and then the least CPU of the others over this one's. Azurite and the emulator of "
        "Google's are slower than most clients, so there the CPU tells. obstore reads nothing from that emulator.\n\n"
    )
    return text + table(rows, {
        "server": "", "client": "client", "at_once": "at once", "gets_per_s": "GETs/s", "mad": "±",
        "us_per_get": "CPU a GET, µs", "of_best": "times the best", "cpu_of_best": "CPU, times less",
    })  # fmt: skip


RELIABILITY_FIGURES = (
    Figure("faults", "Measured", tell_faults, "Medians of interleaved runs."),
    Figure("clients", "On a good day, beside other clients", tell_clients),
)

RELIABILITY_HEAD = """# A store that is unwell, in figures

Every store throttles, stalls, breaks off and goes away some day. [When the store fails](howto/when-the-store-fails.md) says what Leat
does then. `tests/stress` has a file for each scenario, which fails unless the epoch has the content of an epoch without the trouble, or
ends with the one right error. Long outages are in the bench alone. Make this page anew: run the command with `--publish`, then
`./dev bench --publish`.
"""


def page(published: pathlib.Path) -> str:
    """docs/performance.md, of the benches that have published."""
    return page_of(HEAD, FIGURES, published)


def reliability(published: pathlib.Path) -> str:
    """docs/reliability.md."""
    return page_of(RELIABILITY_HEAD, RELIABILITY_FIGURES, published)


def page_of(head: str, figures: tuple[Figure, ...], published: pathlib.Path) -> str:
    parts = [head]
    for figure in figures:
        file = published / f"{figure.bench}.json"
        if not file.is_file():
            continue
        kept = json.loads(file.read_text())
        machine = kept["machine"]
        tables = kept["tables"]
        is_titled = len(tables) > 1 or bool(figure.about)
        told = [f"{one['title']}:\n\n{figure.tell(one['rows'])}" if is_titled else figure.tell(one["rows"]) for one in tables]
        if figure.about:
            told.insert(0, figure.about)
        parts.append(
            f"## {figure.title}\n\n" + "\n\n".join(told) + f"\n\n"
            f"`{kept['command']}`, {kept['date']}, {machine['cpu']}, {machine['cpus']} CPUs, commit {machine['commit']}.\n"
        )
    return "\n".join(parts)


def rewrite() -> None:
    import landscape_page

    landscape_page.write(PUBLISHED)
    PAGE.write_text(page(PUBLISHED))
    RELIABILITY.write_text(reliability(PUBLISHED))
