"""`leat pack`: the samples of a dataset, written as shards."""

from __future__ import annotations

import argparse
import json

from leat._progress import Progress
from leat._shards._plan import FORMATS, MOST_SHARD_BYTES, bytes_of_text, plan_of
from leat._shards._write import write
from leat.errors import InvalidArgument


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    from leat._commands import add_source, add_store

    parser.description = "Writes the samples of a dataset as shards, in their order; goes on where a call stopped."
    add_source(parser, "the dataset: a URL, a path or a pattern")
    parser.add_argument("dest", metavar="DEST", help="where the shards go: an empty folder or prefix")
    parser.add_argument("--format", choices=sorted(FORMATS), default="tar", help="the format of the shards (tar)")
    parser.add_argument("--shard-bytes", metavar="SIZE", default="64MB", help="about so large is a shard (64MB)")
    parser.add_argument("--fields", metavar="NAME,...", help="the fields to write; by default all")
    parser.add_argument("--resize", type=int, metavar="N",
                        help="pictures whose shorter side is above N are made smaller, and JPEG; needs Pillow")  # fmt: skip
    parser.add_argument("--quality", type=int, default=90, metavar="Q", help="of those JPEGs, 1 to 100 (90)")
    parser.add_argument("--uploads", type=int, default=2, metavar="N",
                        help="shards that are written at once; each is held in memory (2)")  # fmt: skip
    parser.add_argument("--dest-endpoint-url", metavar="URL", help="the endpoint of DEST, where it is another")
    parser.add_argument("--json", action="store_true", help="print JSON: shards, samples, bytes, shards that were there")
    add_store(parser)
    parser.epilog = "Example:\n  leat pack s3://bucket/photos s3://bucket/shards --format tar --resize 512"


def run(options: argparse.Namespace) -> None:
    """Does it."""
    from leat._commands import source_of, store_of

    store = store_of(options)
    if not 1 <= options.uploads <= 64:
        raise InvalidArgument(f"--uploads {options.uploads}; it is 1 to 64")
    shard_bytes = bytes_of_text("--shard-bytes", options.shard_bytes)
    if not 1 <= shard_bytes <= MOST_SHARD_BYTES:
        raise InvalidArgument(f"--shard-bytes {options.shard_bytes}; it is at most 1GB, which is held in memory")
    with Progress("reading the catalogue"):
        plan = plan_of(
            source_of(options, store), options.format, shard_bytes,
            fields=options.fields.split(",") if options.fields else None, resize=options.resize, quality=options.quality,
        )  # fmt: skip
    there = {**store, "endpoint_url": options.dest_endpoint_url} if options.dest_endpoint_url else store
    with Progress("packing", "shards") as progress:
        told = write(plan, options.dest, there, uploads=options.uploads, progress=progress.tell)
    if options.json:
        print(json.dumps(told))
        return
    again = f", {told['there']} of them were there already" if told["there"] else ""
    print(f"{told['index']}: {told['samples']:,} samples in {told['shards']} shards, {told['bytes']:,} bytes{again}")
