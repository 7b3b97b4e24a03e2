"""Leat feeds deep-learning training straight from object storage.

    import leat

    loader = leat.Loader("s3://bucket/train", global_batch_size=256, ops=[...])
    for epoch in range(90):
        for batch in loader:
            ...
"""

import importlib
from typing import TYPE_CHECKING, Any

from leat import _log as _log  # From here on the engine speaks through logging.
from leat import errors
from leat._native import __version__
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
    Skipped,
    Throttled,
    Unavailable,
)

if TYPE_CHECKING:
    from leat import ops, testing, trace
    from leat._batches._ragged import Ragged
    from leat._cache import Cache
    from leat._dataset import Dataset
    from leat._formats._audio._draw import SegmentSampler
    from leat._job._mesh import Mesh
    from leat._loader import Loader
    from leat._orders._balance import Balance
    from leat._orders._buckets import SizeBuckets
    from leat._orders._budget import TokenBudget
    from leat._orders._mix import mix
    from leat._orders._pack import Pack
    from leat._orders._shuffle import Shuffle, WeightedSampler
    from leat._show import show
    from leat._storage import StorageOptions

__all__ = [
    "Balance",
    "Cache",
    "Cancelled",
    "Corrupt",
    "Dataset",
    "DeadlineExceeded",
    "Error",
    "Internal",
    "InvalidArgument",
    "Loader",
    "Mesh",
    "NotFound",
    "Pack",
    "PermissionDenied",
    "Ragged",
    "ResourceExhausted",
    "SegmentSampler",
    "Shuffle",
    "SizeBuckets",
    "Skipped",
    "StorageOptions",
    "Throttled",
    "TokenBudget",
    "Unavailable",
    "WeightedSampler",
    "__version__",
    "errors",
    "mix",
    "ops",
    "show",
    "testing",
    "trace",
]

# The rest is imported when it is first asked for, and NumPy with it: `import leat` alone
# takes milliseconds. leat.torch imports torch, which Leat itself does not need;
# leat.research is for benches.
_MODULES = ("ops", "research", "testing", "torch", "trace")
_PLACES = {
    "Balance": "_orders._balance",
    "Cache": "_cache",
    "Dataset": "_dataset",
    "Loader": "_loader",
    "Mesh": "_job._mesh",
    "Pack": "_orders._pack",
    "Ragged": "_batches._ragged",
    "SegmentSampler": "_formats._audio._draw",
    "Shuffle": "_orders._shuffle",
    "SizeBuckets": "_orders._buckets",
    "StorageOptions": "_storage",
    "TokenBudget": "_orders._budget",
    "WeightedSampler": "_orders._shuffle",
    "mix": "_orders._mix",
    "show": "_show",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"leat.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'leat' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"leat.{_PLACES[name]}"), name)
    found.__module__ = "leat"  # As it is imported: in help(), reports and pickles.
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
