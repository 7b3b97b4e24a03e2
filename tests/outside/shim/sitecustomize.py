"""Puts leat.torch.DataLoader where a test file looks for another's; see ../dropin.py.

Python imports this in every process that has this folder in PYTHONPATH, so also in
those that the tests start.
"""

import os

if loader := os.environ.get("LEAT_OUTSIDE_LOADER"):
    import torch.utils.data

    # A file of an older torch imports what the installed one has no more; its
    # tests of that fail with either loader, and so are left out.
    for name in ("DataLoader2", "communication"):
        if not hasattr(torch.utils.data, name):
            setattr(torch.utils.data, name, None)

if loader == "leat":
    import leat.torch

    torch.utils.data.DataLoader = leat.torch.DataLoader
    torch.utils.data.get_worker_info = leat.torch.get_worker_info
    try:
        import torchdata.stateful_dataloader as stateful
    except ImportError:  # Only its own tests need it.
        pass
    else:
        stateful.StatefulDataLoader = leat.torch.DataLoader
