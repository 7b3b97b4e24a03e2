"""Prints the samples that megatron-core's own classes make of a corpus or a blend.

    python megatron_core_samples.py '{"blend": ["0.7", "/data/a", "0.3", "/data/b"], "seq_len": 16, …}'

It prints a line of JSON: for each sample that the training reads, its tokens. megatron-core
needs torch, and no GPU.
"""

from __future__ import annotations

import json
import logging
import pathlib
import sys
import tempfile
import warnings

PARTS = ("train", "valid", "test")


class Tokenizer:
    """The part of a tokenizer that the dataset asks for."""

    vocab_size = None
    eod, pad = 0, None
    unique_identifiers = {"class": "none"}  # noqa: RUF012


def dataset_of(case: dict, cache: str):
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list

    blend = get_blend_from_list(case["blend"])
    part = PARTS.index(case.get("part") or "train")
    where = {"blend": blend, "split": case["split"]} if case.get("split") else {
        "blend_per_split": [blend if number == part else None for number in range(3)]
    }  # fmt: skip
    config = GPTDatasetConfig(
        random_seed=case.get("seed", 1234), sequence_length=case["seq_len"], path_to_cache=cache,
        tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
        create_attention_mask=False, add_extra_token_to_sequence=case.get("extra_token", True), **where,
    )  # fmt: skip
    if config.split_matrix is not None:  # It would look for ever for samples in a part that has no tokens.
        config.split_matrix = [share if number == part else None for number, share in enumerate(config.split_matrix)]
    sizes = [case.get("samples")] * 3
    return BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[part]


def tokens_of(dataset, number: int) -> list[int]:
    """The whole sample, as it is before inputs and labels are cut out of it."""
    if hasattr(dataset, "datasets"):
        return tokens_of(dataset.datasets[dataset.dataset_index[number]], dataset.dataset_sample_index[number])
    return dataset._query_document_sample_shuffle_indices(number)[0].tolist()


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    apart = pathlib.Path(sys.prefix) / "oracle" / "megatron"
    if apart.is_dir():  # Not the whole folder: torchvision lies there.
        import types

        package = types.ModuleType("megatron")
        package.__path__ = [str(apart)]
        sys.modules["megatron"] = package
    import torch

    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    for case in json.loads(sys.argv[1]):
        with tempfile.TemporaryDirectory() as cache:
            dataset = dataset_of(case, cache)
            count = len(dataset) if case.get("samples") is None else min(len(dataset), case["samples"])
            print(json.dumps([tokens_of(dataset, number) for number in range(count)]))


if __name__ == "__main__":
    main()
