"""Reads a dataset by one, two and eight ranks, and counts what that asks of its bucket."""

from __future__ import annotations

import leat

MIB = 1 << 20
WORLDS = (1, 2, 8)


def steps_if_read_about_once(dataset, served, size, check, most_bytes=lambda world, size: 1.1 * size):
    """The number of steps of an epoch, which has the same samples in each step at any number of ranks.

    Args:
        size: of the stored bytes, of which each piece of 8 MiB is asked for about once.
        check: is called with each batch, and the number of ranks.
        most_bytes: how many bytes this many ranks may read.
    """
    found = {}
    for world in WORLDS:
        served.reset()
        found[world] = _epoch_of(dataset, world, check)
        counters = served.counters()
        assert counters["get"] <= 1.3 * size / (8 * MIB) + world, (world, counters)
        assert counters["bytes"] <= most_bytes(world, size), (world, counters)
    assert found[2] == found[1] and found[8] == found[1]
    return len(found[1][0])


def _epoch_of(dataset, world, check):
    """The samples of each step, and the hash of what all ranks got."""
    steps: list[list[int]] = []
    hashes = 0
    for rank in range(world):
        with leat.Loader(
            dataset, global_batch_size=48, shuffle=True, ids=True, output="numpy", memory="1GiB", epochs=1,
            batch="dict", rank=rank, world_size=world,
        ) as loader:  # fmt: skip
            for number, batch in enumerate(loader):
                if rank == 0:
                    steps.append([])
                steps[number] += batch["index"].tolist()
                check(batch, world)
            hashes += int(loader.stats()[-1]["content_hash"], 16)
    return [sorted(step) for step in steps], hashes % 2**128


def check_label_and_name(batch, _world):
    """Both are the number of the sample."""
    assert batch["label"].tolist() == batch["index"].tolist()
    assert [int(name) for name in batch["name"].tolist()] == batch["index"].tolist()
