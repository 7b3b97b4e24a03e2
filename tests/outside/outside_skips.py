"""A pytest plugin: which of torch's tests are not run against ours, each with its reason."""

import os
import re

import pytest

# Not of the map-style part; by class or name, and left out with either loader.
ELSEWHERE = {
    r"TestDatasetRandomSplit|TestTensorDataset|TestStackDataset|TestConcatDataset": "tests datasets",
    r"default_collate|default_convert|numpy_gen_state|typing|sampler_reproducibility"
    r"|test_random_sampler$|invalid_rank": "tests collation or samplers, without a loader",
    r"iterable|datapipe|DataLoader2|SetAffinity|multi_epochs_repro|fd_limit|early_exit":
        "iterates an IterableDataset or a DataPipe, which torch's own iterators do",
}  # fmt: skip

OF_A_PROCESS = "asks for what only a process has: "
NOT_OURS = {
    "test_get_worker_info": OF_A_PROCESS + "a copy of the dataset, and a pid, in each worker",
    "test_ind_worker_queue": OF_A_PROCESS + "a copy of the dataset that worker_init_fn changes",
    "test_dataset_not_reset": OF_A_PROCESS + "a copy of the dataset that later changes do not reach",
    "test_worker_seed": OF_A_PROCESS + "a torch.initial_seed() of its own",
    "test_worker_init_fn_forkserver": OF_A_PROCESS + "to fail at what cannot be pickled",
    "test_in_order_index_ds": OF_A_PROCESS + "a dataset that keeps its first worker's id",
    "test_out_of_order_index_ds": OF_A_PROCESS + "a dataset that keeps its first worker's id",
    "test_segfault": OF_A_PROCESS + "to crash alone",
    "test_excessive_thread_creation_warning": "warns of 1,000 processes; threads= bounds ours",
}


def pytest_collection_modifyitems(config, items):
    kept, left = [], []
    for item in items:
        of_interest = not any(re.search(pattern, item.nodeid) for pattern in ELSEWHERE)
        (kept if of_interest else left).append(item)
        reason = NOT_OURS.get(item.name)
        if reason and os.environ.get("LEAT_OUTSIDE_LOADER") == "leat":
            item.add_marker(pytest.mark.skip(reason=reason))
    config.hook.pytest_deselected(items=left)
    items[:] = kept
