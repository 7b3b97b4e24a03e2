"""A catalogue says how shards are cut into pieces, and may lie: memory stays bounded, and each sample comes once."""

from __future__ import annotations

import pathlib
import struct

import pytest

import leat
from small_datasets import make_shards

SHARDS, SAMPLES, SIZE = 4, 20, 100_000
N = SHARDS * SAMPLES
HEADER, CRC_AT, ENTRY, PIECES = 64, 60, struct.Struct("<IIQQII"), 16


def crc32c(data: bytes, crc: int = 0) -> int:
    """RFC 3720, appendix B.4."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def with_pieces(file: bytes, pieces: list[int]) -> bytes:
    """A catalogue's file that says `pieces`, its last section, with checksums that fit."""
    sections = struct.unpack_from("<I", file, 12)[0]
    last = HEADER + (sections - 1) * ENTRY.size
    kind, field, offset, _, width, _ = ENTRY.unpack_from(file, last)
    assert kind == PIECES
    told = struct.pack(f"<{len(pieces)}Q", *pieces)
    made = bytearray(file[:offset] + told)
    ENTRY.pack_into(made, last, kind, field, offset, len(told), width, crc32c(told))
    struct.pack_into("<Q", made, 16, len(made))
    crc = crc32c(bytes(made[HEADER : HEADER + sections * ENTRY.size]), crc32c(bytes(made[:CRC_AT])))
    struct.pack_into("<I", made, CRC_AT, crc)
    return bytes(made)


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> pathlib.Path:
    """Eight MB in four shards, a piece each."""
    folder = tmp_path_factory.mktemp("hostile") / "shards"
    make_shards(folder, shards=SHARDS, samples=SAMPLES, size=SIZE)
    return folder


@pytest.mark.parametrize(
    "pieces",
    [[0, N], [*range(N), N], [*[0] * 1000, N], [0, 1, N - 1, N], [0, *[N] * 1000]],
    ids=["one over all shards", "one a sample", "empty ones first", "across shards", "empty ones last"],
)
@pytest.mark.parametrize("memory", ["2MiB", "1GiB"])
def test_each_sample_comes_once_whatever_a_catalogue_says_of_pieces(shards, fresh_cache, pieces, memory):
    leat.Dataset(shards)
    (kept,) = fresh_cache.glob("catalogues/*.leatcat")
    lie = with_pieces(kept.read_bytes(), pieces)
    kept.write_bytes(lie)
    for world in (1, 2):
        seen: list[str] = []
        for rank in range(world):
            dataset = leat.Dataset(shards, refresh="never")
            with leat.Loader(dataset, global_batch_size=10, shuffle=True, epochs=1, ids=True, rank=rank,
                             world_size=world, memory=memory, output="numpy") as loader:  # fmt: skip
                for batch in loader:
                    seen += [int(one) for one in batch["index"]]
        assert sorted(seen) == list(range(N)), world
    assert kept.read_bytes() == lie  # It was believed, not made anew.
