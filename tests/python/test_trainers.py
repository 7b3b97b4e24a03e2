"""Two trainers that know nothing of Leat: a loop shaped as Megatron-LM's, and Hugging Face's Trainer on packed rows."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch

import leat
from megatron_data import write_corpus
from small_datasets import write

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
EOS, ANSWER = 0, 1


def run(name: str, *arguments: str, ranks: int, tmp_path: pathlib.Path) -> list[float]:
    """The losses that a script prints, as torchrun starts it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    started = []
    for rank in range(ranks):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_PORT": port}
        environment = {**os.environ, **{key: str(value) for key, value in place.items()}, "MASTER_ADDR": "127.0.0.1",
                       "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
        command = [sys.executable, str(EXAMPLES / name), *arguments]
        started.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=-1, stderr=-1, text=True))
    ended = [process.communicate(timeout=240) for process in started]
    for process, (_, errors) in zip(started, ended):
        assert process.returncode == 0, errors
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", ended[0][0])]


def imported(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def blend(tmp_path_factory) -> list[str]:
    """Two corpora whose next token is nearly always the same step away."""
    folder = tmp_path_factory.mktemp("blend")
    rng, path = np.random.default_rng(1), []
    for weight, name, step in (("0.7", "books", 3), ("0.3", "code", 5)):
        documents = []
        for _ in range(60):
            walk = np.cumsum(np.where(rng.random(int(rng.integers(5, 120))) < 0.95, step, 7)) % 255 + 1
            documents.append([[*walk.tolist(), EOS]])
        path += [weight, write_corpus(folder / name, documents)]
    return path


def losses_without_a_loader(blend: list[str], tmp_path: pathlib.Path) -> list[float]:
    """The same trainer on the same samples, taken one by one."""
    import torch.distributed as dist

    example = imported("train_megatron")
    dataset = leat.Dataset.megatron(
        blend, order="megatron", seq_len=example.SEQ_LENGTH, split="969,30,1",
        samples=example.GLOBAL_BATCH * example.ITERATIONS,
    )  # fmt: skip
    samples = [torch.from_numpy(dataset[number]["tokens"].astype(np.int64)) for number in range(len(dataset))]
    batches = (
        example.megatrons_keys({"tokens": torch.stack(samples[first : first + example.MICRO_BATCH])})
        for first in range(0, len(samples), example.MICRO_BATCH)
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        model = example.GPTModel()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        steps = example.GLOBAL_BATCH // example.MICRO_BATCH
        return [
            float(f"{example.train_step(batches, model, optimizer, steps):.9f}") for _ in range(example.ITERATIONS)
        ]
    finally:
        dist.destroy_process_group()
        torch.set_num_threads(threads)


def test_a_loop_as_megatrons_trains_on_a_blend(blend, tmp_path):
    alone = run("train_megatron.py", *blend, ranks=1, tmp_path=tmp_path)
    assert len(alone) == 60 and np.mean(alone[-5:]) < 0.5 * alone[0]
    assert alone == losses_without_a_loader(blend, tmp_path)
    several = run("train_megatron.py", *blend, ranks=2, tmp_path=tmp_path)
    # Sums are rounded in another order, and Adam enlarges that.
    assert np.allclose(several[:10], alone[:10], rtol=1e-4) and np.mean(several[-5:]) < 0.5 * several[0]


@pytest.fixture(scope="module")
def conversations(tmp_path_factory) -> pathlib.Path:
    """300 prompts, and as the answer to each its first token, three times."""
    folder = tmp_path_factory.mktemp("conversations")
    rng, tokens = np.random.default_rng(2), []
    for _ in range(300):
        prompt = rng.integers(2, 64, int(rng.integers(3, 30))).tolist()
        tokens += [*prompt, ANSWER, prompt[0], prompt[0], prompt[0], EOS]
    write(folder / "a.bin", np.array(tokens, "<u2").tobytes())
    return folder


needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None or importlib.util.find_spec("accelerate") is None,
    reason="transformers and accelerate are not installed: pip install -r tools/test-requirements.txt",
)


@needs_transformers
def test_hugging_faces_trainer_fine_tunes_on_packed_rows(conversations, tmp_path):
    losses = run("train_hf_packed.py", str(conversations), ranks=2, tmp_path=tmp_path)
    assert len(losses) == 6 and losses[-1] < 0.7 * losses[0]


@needs_transformers
def test_a_packed_row_has_the_loss_of_its_documents(conversations):
    """Attention stays within a document, and only answers have labels."""
    example = imported("train_hf_packed")
    documents = leat.Dataset.tokens(conversations, dtype="uint16", seq_len=2**20, eos=EOS)
    with leat.Loader(documents, batch_size=2, train=True, sampler=leat.Pack(example.ROW), batch="dict",
                     output="torch", collate=lambda rows: rows) as loader:  # fmt: skip
        rows = next(iter(loader))
    batch, model = example.as_trainer(rows), example.model().eval()
    apart = []
    for row in rows:
        segments = torch.as_tensor(row["segment_ids"])
        for number in range(1, int(segments.max()) + 1):
            document = torch.as_tensor(row["tokens"]).long()[segments == number]
            after = int((document == ANSWER).nonzero()[0]) + 1
            with torch.no_grad():
                logits = model(document[None]).logits[0]
            apart += torch.nn.functional.cross_entropy(
                logits[after - 1 : -1], document[after:], reduction="none"
            ).tolist()
    assert len(apart) == int((batch["labels"] != -100).sum()) > 20
    with torch.no_grad():
        assert abs(float(model(**batch).loss) - np.mean(apart)) < 1e-4


needs_trl = pytest.mark.skipif(
    importlib.util.find_spec("trl") is None,
    reason="trl is not installed: pip install -r tools/test-requirements.txt",
)


@needs_trl
def test_trls_trainer_fine_tunes_on_packed_rows_by_its_own_collator(conversations, monkeypatch):
    """Its batches have whole documents, labels for their answers alone, and where each begins; and it learns from them."""
    monkeypatch.setattr(sys, "argv", ["train_trl_packed.py", str(conversations)])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = imported("train_trl_packed")
    made = example.trainer()
    documents = leat.Dataset.tokens(conversations, dtype="uint16", seq_len=2**20, eos=EOS)
    by_tokens = {documents[number]["tokens"].tobytes() for number in range(len(documents))}
    batches = 0
    with made.get_train_dataloader() as loader:
        for batch in loader:
            ids, starts = batch["input_ids"][0], batch["cu_seq_lens_q"].tolist()
            assert batch["input_ids"].shape[0] == 1 and "attention_mask" not in batch
            for begin, end in zip(starts[:-1], starts[1:]):
                document = ids[begin:end].numpy()
                assert document.astype(np.uint16).tobytes() in by_tokens
                after = int(np.flatnonzero(document == ANSWER)[0]) + 1
                expected = np.where(np.arange(len(document)) < after, -100, document)
                assert batch["labels"][0, begin:end].tolist() == expected.tolist()
            batches += 1
    assert batches > 5
    made.train()
    losses = [log["loss"] for log in made.state.log_history if "loss" in log]
    assert len(losses) == 6 and losses[-1] < 0.7 * losses[0]
