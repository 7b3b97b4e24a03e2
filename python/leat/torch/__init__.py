"""A DataLoader that takes the place of torch's, for any map-style dataset.

    from leat.torch import DataLoader      # was: from torch.utils.data import DataLoader

    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)

It takes the same arguments and gives the same batches in the same order, but it fetches the
items of a batch, and of the batches ahead, concurrently.
docs/coming-from/pytorch-dataloader.md compares the two.
"""

from leat.torch._loader import DataLoader
from leat.torch._workers import get_worker_info

__all__ = ["DataLoader", "get_worker_info"]

DataLoader.__module__ = "leat.torch"  # As it is imported: in help() and reports.
