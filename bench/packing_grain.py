"""Packs documents with Grain, for packing_bench.py: the rows that each method makes, as JSON.

    packing_grain.py LENGTHS.npy CAPACITY BINS
"""

import json
import sys

import grain
import numpy as np

WAYS = {
    "best_fit": grain.experimental.BestFitPackIterDataset,
    "first_fit": grain.experimental.FirstFitPackIterDataset,
}


class Documents(grain.sources.RandomAccessDataSource):
    """Documents of these lengths; the tokens do not matter."""

    def __init__(self, lengths):
        self._lengths = lengths

    def __len__(self):
        return len(self._lengths)

    def __getitem__(self, number):
        return {"tokens": np.zeros(self._lengths[number], np.uint8)}


def main() -> None:
    lengths, capacity, bins = np.load(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    documents = grain.MapDataset.source(Documents(lengths)).to_iter_dataset()
    rows = {}
    for name, way in WAYS.items():
        packed = way(documents, length_struct={"tokens": capacity}, num_packing_bins=bins)
        rows[name] = sum(1 for _ in packed)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
