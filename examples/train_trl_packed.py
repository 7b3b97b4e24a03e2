"""Fine-tunes with TRL's SFTTrainer on packed conversations, by its own collator for batches without padding.

    torchrun --nproc-per-node=4 examples/train_trl_packed.py s3://mine/conversations

A document is a prompt, the token ANSWER, an answer and the token EOS, as in train_hf_packed.py. The trainer, its loss
and its collator are TRL's own. It gets rows as its own packing makes them: ids without padding, labels, and the lengths
of the documents.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import datasets
import leat
import numpy as np
from tokenizers import Tokenizer, models
from train_hf_packed import ANSWER, EOS, ROW, VOCABULARY, model
from transformers import PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

EPOCHS = 6


def as_example(row: dict[str, Any]) -> dict[str, list[int]]:
    """A row as TRL's collator takes it. Only answers have labels; the model shifts them."""
    documents = np.asarray(row["segment_ids"])
    tokens, positions = (np.asarray(row[name], np.int64)[documents > 0] for name in ("tokens", "positions"))
    places = np.arange(len(tokens))
    begun = np.maximum.accumulate(np.where(tokens == ANSWER, places, -1))  # The place where the last answer began,
    is_answer = (begun >= places - positions) & (begun < places)  # in this document.
    return {
        "input_ids": tokens.tolist(),
        "labels": np.where(is_answer, tokens, -100).tolist(),
        "seq_lengths": np.bincount(documents)[1:].tolist(),
    }


class PackedTrainer(SFTTrainer):
    def get_train_dataloader(self) -> leat.Loader:
        return load(self.args, lambda rows: self.data_collator([as_example(row) for row in rows]))


def load(args: SFTConfig, collate: Any, **options: Any) -> leat.Loader:
    documents = leat.Dataset.tokens(sys.argv[1], dtype="uint16", seq_len=2**20, eos=EOS)
    return leat.Loader(documents, batch_size=args.per_device_train_batch_size, train=True, seed=args.seed,
                       sampler=leat.Pack(ROW), batch="dict", output="numpy", collate=collate, **options)  # fmt: skip


def tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({str(number): number for number in range(VOCABULARY)}, unk_token="2"))
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token=str(EOS), pad_token=str(EOS))


def trainer() -> PackedTrainer:
    args = SFTConfig(
        tempfile.gettempdir(), num_train_epochs=EPOCHS, per_device_train_batch_size=4, seed=0, learning_rate=3e-3,
        padding_free=True, max_length=None, dataset_kwargs={"skip_prepare_dataset": True},
        logging_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True, bf16=False,
        gradient_checkpointing=False, disable_tqdm=True)  # fmt: skip
    with load(args, lambda rows: [as_example(row) for row in rows], epochs=1, rank=0, world_size=1) as loader:
        sample = datasets.Dataset.from_list(next(iter(loader)))  # TRL looks at its first sample.
    return PackedTrainer(model(), args, train_dataset=sample, processing_class=tokenizer())


if __name__ == "__main__":
    made = trainer()
    made.train()
    if made.is_world_process_zero():
        for epoch, log in enumerate(log for log in made.state.log_history if "loss" in log):
            print(f"epoch {epoch}: loss {log['loss']:.3f}")
