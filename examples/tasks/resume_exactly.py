"""Stops in the middle of an epoch and goes on at the very next sample."""
import json

import leat
from leat import ops


def make_loader():
    return leat.Loader("s3://data/photos/train", batch_size=8, train=True, seed=7, fields=("image", "index"),
                       ops=[ops.DecodeImage(), ops.RandomCrop(32)])


whole = [int(i) for _, index in make_loader() for i in index]
first = make_loader()
batches = iter(first)
seen = [int(i) for _ in range(4) for i in next(batches)[1]]
state = json.dumps(first.state_dict())
second = make_loader()
second.load_state_dict(json.loads(state))
seen += [int(i) for _, index in second for i in index]
print(f"same order: {seen == whole}")
