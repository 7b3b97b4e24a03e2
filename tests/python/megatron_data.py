"""Corpora as Megatron-LM's tools write them, and the cases of its order."""

from __future__ import annotations

import hashlib
import json
import pathlib
import struct
from collections.abc import Sequence

import numpy as np

CODES = {"uint8": 1, "int32": 4, "uint16": 8}


def index_of(documents: Sequence[Sequence[Sequence[int]]], dtype: str) -> bytes:
    """As megatron.core.datasets.indexed_dataset writes it: documents of sequences."""
    sizes = [len(sequence) for document in documents for sequence in document]
    ends = np.cumsum([0, *map(len, documents)])
    pointers = np.cumsum([0, *sizes])[:-1] * np.dtype(dtype).itemsize
    head = struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, CODES[dtype], len(sizes), len(ends))
    return head + np.array(sizes, "<i4").tobytes() + pointers.astype("<i8").tobytes() + ends.astype("<i8").tobytes()


def write_corpus(prefix: pathlib.Path, documents, dtype: str = "uint16") -> str:
    tokens = [token for document in documents for sequence in document for token in sequence]
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(f"{prefix.name}.bin").write_bytes(np.array(tokens, np.dtype(dtype).newbyteorder("<")).tobytes())
    prefix.with_name(f"{prefix.name}.idx").write_bytes(index_of(documents, dtype))
    return str(prefix)


def write_three(folder: pathlib.Path) -> dict[str, str]:
    """Corpora of 120, 70 and 9 documents. A token is its own place; some documents are empty."""
    rng = np.random.default_rng(21)
    paths, first = {}, 0
    for name, count, most in (("books", 120, 60), ("code", 70, 200), ("few", 9, 40)):
        documents = []
        for _ in range(count):
            size = int(rng.integers(0, most))
            documents.append([list(range(first, first + size))])
            first += size
        paths[name] = write_corpus(folder / name, documents)
    return paths


def cases(paths: dict[str, str]) -> dict[str, dict]:
    """Orders that are asked for, with the arguments of leat.Dataset.megatron."""
    books, code, few = paths["books"], paths["code"], paths["few"]
    return {
        "one epoch": {"blend": [books], "seq_len": 16},
        "a part of an epoch": {"blend": [books], "seq_len": 16, "samples": 20, "seed": 7},
        "three epochs": {"blend": [books], "seq_len": 16, "samples": 640},
        "a last epoch apart": {"blend": [books], "seq_len": 16, "samples": 500},
        "many epochs": {"blend": [few], "seq_len": 64, "samples": 90},
        "a document in several samples": {"blend": [code], "seq_len": 5, "samples": 3000},
        "no extra token": {"blend": [books], "seq_len": 16, "samples": 500, "extra_token": False},
        "train": {"blend": [books], "seq_len": 16, "samples": 300, "split": "90,7,3"},
        "valid": {"blend": [books], "seq_len": 16, "samples": 40, "split": "90,7,3", "part": "valid"},
        "test": {"blend": [books], "seq_len": 16, "split": "900,50,50", "part": "test"},
        "a blend": {"blend": ["0.7", books, "0.3", code], "seq_len": 16, "samples": 1000, "split": "969,30,1"},
        "a blend of three": {"blend": ["3", books, "5", code, "0.5", few], "seq_len": 31, "samples": 777, "seed": 5},
        "a blend of one": {"blend": ["1", books], "seq_len": 16, "samples": 300, "split": "1,0,0"},
        "a part's own path, with a weight": {"blend": ["1", books], "seq_len": 16, "samples": 300},
        "sizes for weights": {"blend": [books, code, few], "seq_len": 16},
        "sizes for weights, some of it": {"blend": [books, code, few], "seq_len": 16, "samples": 400, "split": "8,1,1"},
        "validation of a blend": {"blend": ["2", books, "1", code], "seq_len": 16, "samples": 60,
                                  "split": "8,1,1", "part": "valid"},
    }  # fmt: skip


def digest_of(samples: Sequence[Sequence[int]]) -> str:
    """A digest of samples of equal length."""
    told = hashlib.blake2b(json.dumps(np.shape(samples)).encode(), digest_size=12)
    told.update(np.asarray(samples, "<i8").tobytes())
    return told.hexdigest()
