"""Fine-tunes with Hugging Face's Trainer on packed conversations: rows without padding in between.

    torchrun --nproc-per-node=4 examples/train_hf_packed.py s3://mine/conversations

A document is a prompt, the token ANSWER, an answer and the token EOS. Only answers have
labels. transformers keeps attention within a document where position_ids begin anew, if no
cache of keys and values is in use.
"""

from __future__ import annotations

import sys
import tempfile

import leat
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

EOS, ANSWER, VOCABULARY, ROW, EPOCHS = 0, 1, 64, 128, 6


def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=ROW, bos_token_id=None, eos_token_id=EOS, use_cache=False))  # fmt: skip


def as_trainer(rows: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """The rows as the model takes them. It shifts labels itself, so a token is its own label."""
    names = ("tokens", "positions", "segment_ids")
    tokens, positions, documents = (torch.stack([torch.as_tensor(row[name]).long() for row in rows]) for name in names)
    places = torch.arange(tokens.shape[1])
    begun = torch.where(tokens == ANSWER, places, -1).cummax(1).values  # The place where the last answer began,
    is_answer = (begun >= places - positions) & (begun < places) & (documents > 0)  # in this document.
    return {"input_ids": tokens, "position_ids": positions, "labels": torch.where(is_answer, tokens, -100)}


class PackedTrainer(Trainer):
    def get_train_dataloader(self) -> leat.Loader:
        documents = leat.Dataset.tokens(sys.argv[1], dtype="uint16", seq_len=2**20, eos=EOS)
        return leat.Loader(documents, batch_size=self.args.per_device_train_batch_size, train=True,
                           seed=self.args.seed, sampler=leat.Pack(ROW), batch="dict", collate=as_trainer)  # fmt: skip


if __name__ == "__main__":
    arguments = TrainingArguments(
        tempfile.gettempdir(), num_train_epochs=EPOCHS, per_device_train_batch_size=4, seed=0,
        learning_rate=3e-3, logging_strategy="epoch", save_strategy="no", report_to="none",
        use_cpu=True, disable_tqdm=True)  # fmt: skip
    trainer = PackedTrainer(model(), arguments)
    trainer.train()
    if trainer.is_world_process_zero():
        for epoch, log in enumerate(log for log in trainer.state.log_history if "loss" in log):
            print(f"epoch {epoch}: loss {log['loss']:.3f}")
