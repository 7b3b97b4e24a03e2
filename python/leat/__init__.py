"""Leat feeds deep-learning training straight from object storage.

    import leat

    loader = leat.Loader("s3://bucket/train", global_batch_size=256, ops=[...])
    for epoch in range(90):
        for batch in loader:
            ...
"""

from typing import Any

from leat import _log as _log  # From here on the engine speaks through logging.
from leat import errors, ops, testing, trace
from leat._native import __version__
from leat._buckets import SizeBuckets
from leat._cache import Cache
from leat._dataset import Dataset
from leat.errors import (
    Cancelled,
    Corrupt,
    DeadlineExceeded,
    Error,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Throttled,
    Unavailable,
)
from leat._loader import Loader
from leat._ragged import Ragged
from leat._shuffle import Shuffle, WeightedSampler
from leat._storage import StorageOptions

__all__ = [
    "Cache",
    "Cancelled",
    "Corrupt",
    "Dataset",
    "DeadlineExceeded",
    "Error",
    "Internal",
    "InvalidArgument",
    "Loader",
    "NotFound",
    "PermissionDenied",
    "Ragged",
    "ResourceExhausted",
    "Shuffle",
    "SizeBuckets",
    "StorageOptions",
    "Throttled",
    "Unavailable",
    "WeightedSampler",
    "__version__",
    "errors",
    "ops",
    "testing",
    "trace",
]

for _public in (
    Cache, Dataset, Loader, Ragged, Shuffle, SizeBuckets, StorageOptions, WeightedSampler,
):
    _public.__module__ = "leat"  # As it is imported: in help(), reports and pickles.


def __getattr__(name: str) -> Any:
    # leat.torch imports torch, which Leat itself does not need; leat.research is for benches.
    if name in ("research", "torch"):
        import importlib

        return importlib.import_module(f"leat.{name}")
    raise AttributeError(f"module 'leat' has no attribute {name!r}")
