"""A pytest plugin: what does not apply to threads, each with its reason."""

import pytest

OWN_PROCESS = "asks for what only a process of its own has: "
SKIPS = {
    "test_get_worker_info": OWN_PROCESS + "a copy of the dataset, and a pid, in each worker",
    "test_ind_worker_queue": OWN_PROCESS + "a copy of the dataset that worker_init_fn changes",
    "test_dataset_not_reset": OWN_PROCESS + "a copy of the dataset that later changes do not reach",
    "test_worker_seed": OWN_PROCESS + "torch.initial_seed() differs; get_worker_info().rng is ours",
    "test_segfault": OWN_PROCESS + "to crash alone; a segfault in a thread ends the program",
    "test_excessive_thread_creation_warning": "warns of 1,000 processes; threads= bounds ours",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if reason := SKIPS.get(item.name):
            item.add_marker(pytest.mark.skip(reason="leat: " + reason))
