"""Loaders where others' trainers and checkpoints take a DataLoader."""

from __future__ import annotations

import importlib.util
import json

import pytest
import torch
import torch.utils.data
from torch import nn

import leat
from dropin_datasets import Slow
from leat.ops import Cast, DecodeImage
from leat.torch import DataLoader

OPTIONS = {"fields": ("image", "label", "index"), "batch": "tuple",
           "ops": [DecodeImage(mode="L"), Cast("float32")]}  # fmt: skip


def make_loader(pictures) -> leat.Loader:
    """8 batches of (images, labels, ids) an epoch, shuffled; the last has 4 samples."""
    return leat.Loader(pictures, batch_size=8, shuffle=True, drop_last=False, output="torch", **OPTIONS)


def make_engine_loader(pictures) -> DataLoader:
    return DataLoader(leat.Dataset(pictures), batch_size=8, shuffle=True, engine=OPTIONS)


def ids_of(batches) -> list[int]:
    return [i for *_, ids in batches for i in ids.tolist()]


def needs(module: str):
    return pytest.mark.skipif(
        importlib.util.find_spec(module) is None,
        reason=f"{module} is not installed: PyPI has it, Debian 12 does not",
    )


# --- torch.distributed.checkpoint -------------------------------------------

LOADERS = {
    "leat.Loader": make_loader,
    "the engine in torch's place": make_engine_loader,
    "a dataset of one's own": lambda _: DataLoader(
        Slow(60, 0), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
}


@pytest.mark.parametrize("make", LOADERS.values(), ids=LOADERS)
def test_a_distributed_checkpoint_saves_and_loads_the_position(make, pictures, tmp_path):
    stateful = pytest.importorskip(
        "torch.distributed.checkpoint.stateful", reason="torch is older than 2.2: no Stateful"
    )
    import torch.distributed.checkpoint as dcp

    loader = make(pictures)
    assert isinstance(loader, stateful.Stateful)
    batches = iter(loader)
    seen = [next(batches) for _ in range(3)]
    dcp.save({"loader": loader}, checkpoint_id=tmp_path / "saved", no_dist=True)
    expected = ids_of(batches)

    again = make(pictures)
    dcp.load({"loader": again}, checkpoint_id=tmp_path / "saved", no_dist=True)

    assert ids_of(again) == expected
    assert sorted(ids_of(seen) + expected) == list(range(60))


# --- Lightning --------------------------------------------------------------


def lightning_module():
    import pytorch_lightning as lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.Sequential(nn.Flatten(), nn.Linear(120, 3))
            self.seen: list[tuple[int, list[int]]] = []

        def training_step(self, batch, _):
            images, labels, ids = batch
            self.seen.append((self.current_epoch, ids.tolist()))
            return nn.functional.cross_entropy(self.network(images), labels)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

        def epochs(self):
            found: dict[int, list[int]] = {}
            for epoch, ids in self.seen:
                found.setdefault(epoch, []).extend(ids)
            return found

    return Module()


def lightning_trainer(folder, **options):
    import pytorch_lightning as lightning

    return lightning.Trainer(accelerator="cpu", devices=1, logger=False, default_root_dir=folder,
                             enable_progress_bar=False, enable_model_summary=False,
                             **{"enable_checkpointing": False, **options})  # fmt: skip


@needs("pytorch_lightning")
@pytest.mark.parametrize("make", [make_loader, make_engine_loader])
def test_lightning_delivers_whole_epochs_each_in_an_order_of_its_own(make, pictures, tmp_path):
    module = lightning_module()
    lightning_trainer(tmp_path, max_epochs=3).fit(module, make(pictures))

    epochs = module.epochs()
    assert list(epochs) == [0, 1, 2]
    assert all(sorted(ids) == list(range(60)) for ids in epochs.values())
    assert epochs[0] != epochs[1] != epochs[2]
    assert epochs == {e: ids_of(batches) for e, batches in enumerate_epochs(make(pictures), 3)}


def enumerate_epochs(loader, count):
    return [(epoch, list(loader)) for epoch in range(count)]


@needs("pytorch_lightning")
@pytest.mark.parametrize("make", [make_loader, make_engine_loader])
@pytest.mark.parametrize("stopped_after", [3, 8, 11])
def test_lightning_resumes_where_its_checkpoint_was(make, stopped_after, pictures, tmp_path):
    from pytorch_lightning.callbacks import ModelCheckpoint

    module = lightning_module()
    keep = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=stopped_after)
    lightning_trainer(tmp_path, max_steps=stopped_after, enable_checkpointing=True,
                      callbacks=[keep]).fit(module, make(pictures))  # fmt: skip

    resumed = lightning_module()
    lightning_trainer(tmp_path, max_epochs=3).fit(
        resumed, make(pictures), ckpt_path=keep.best_model_path
    )

    expected = [ids.tolist() for _, batches in enumerate_epochs(make(pictures), 3)
                for *_, ids in batches]  # fmt: skip
    assert [ids for _, ids in module.seen + resumed.seen] == expected


# --- Accelerate -------------------------------------------------------------


@needs("accelerate")
@pytest.mark.parametrize("make", [make_loader, make_engine_loader])
def test_accelerate_leaves_the_engine_its_order_and_saves_its_state(make, pictures, tmp_path):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    network, loader = accelerator.prepare(nn.Linear(120, 3), make(pictures))
    accelerator.register_for_checkpointing(loader)
    batches = iter(loader)
    seen = [next(batches) for _ in range(3)]
    accelerator.save_state(str(tmp_path / "saved"))
    expected = ids_of(batches)

    again = make(pictures)
    accelerator._custom_objects.clear()
    accelerator.register_for_checkpointing(again)
    accelerator.load_state(str(tmp_path / "saved"))

    assert ids_of(again) == expected
    assert sorted(ids_of(seen) + expected) == list(range(60))
    accelerator.free_memory()


def make_torchs(dataset) -> torch.utils.data.DataLoader:
    return torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True,
                                       generator=torch.Generator().manual_seed(3))  # fmt: skip


def prepared_for(rank: int, dataset, **options):
    from accelerate.data_loader import prepare_data_loader

    return prepare_data_loader(make_torchs(dataset), num_processes=2, process_index=rank, **options)


@needs("accelerate")
@pytest.mark.parametrize("options", [{}, {"split_batches": True}, {"even_batches": False}])
def test_accelerate_shards_and_the_items_are_still_fetched_at_once(options):
    from accelerate import Accelerator

    Accelerator(cpu=True)
    for rank in range(2):
        expected = prepared_for(rank, Slow(30, 0), **options)
        dataset = Slow(30, 0.02)
        loader = prepared_for(rank, dataset, **options)
        loader.base_dataloader = DataLoader.like(loader.base_dataloader)

        for _ in range(2):
            assert [ids.tolist() for _, ids in loader] == [ids.tolist() for _, ids in expected]
        assert dataset.peak > 1


@needs("accelerate")
def test_accelerate_is_not_left_to_replace_it_unnoticed(pictures):
    from accelerate import Accelerator

    with pytest.warns(UserWarning, match=r"base_dataloader = leat.torch.DataLoader.like"):
        Accelerator(cpu=True).prepare(DataLoader(Slow(8, 0), batch_size=4))


# --- Hugging Face's Trainer -------------------------------------------------


@needs("transformers")
@needs("accelerate")
@pytest.mark.parametrize("stopped_after", [3, 8, 11])
def test_hugging_face_resumes_by_a_callback_that_keeps_the_state(stopped_after, pictures, tmp_path):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class KeepsPosition(TrainerCallback):
        def __init__(self, loader) -> None:
            self.loader = loader

        def on_save(self, args, state, control, **_):
            folder = tmp_path / f"checkpoint-{state.global_step}"
            (folder / "loader.json").write_text(json.dumps(self.loader.state_dict()))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(120, 3)
            self.seen: list[list[int]] = []

        def forward(self, image, label, index):
            self.seen.append(index.tolist())
            return {"loss": nn.functional.cross_entropy(self.linear(image.flatten(1)), label)}

    def fit(loader, resumed=None, **options):
        class LeatTrainer(Trainer):
            def get_train_dataloader(self):
                return loader

        arguments = TrainingArguments(
            str(tmp_path), num_train_epochs=3, save_steps=stopped_after, report_to="none",
            use_cpu=True, disable_tqdm=True, ignore_data_skip=True, **options)  # fmt: skip
        network = Network()
        LeatTrainer(network, arguments, callbacks=[KeepsPosition(loader)]).train(resumed)
        return network.seen

    def load():
        return leat.Loader(pictures, batch_size=8, shuffle=True, drop_last=False, output="torch",
                           **{**OPTIONS, "batch": "dict"})  # fmt: skip

    begun = fit(load(), max_steps=stopped_after)
    again = load()
    saved = tmp_path / f"checkpoint-{stopped_after}"
    again.load_state_dict(json.loads((saved / "loader.json").read_text()))
    resumed = fit(again, str(saved))

    expected = [ids.tolist() for _, batches in enumerate_epochs(make_loader(pictures), 3)
                for *_, ids in batches]  # fmt: skip
    assert begun + resumed == expected


# --- what all of them ask ---------------------------------------------------


def test_an_engine_in_torchs_place_is_sharded_already_and_follows_set_epoch(pictures):
    loader = make_engine_loader(pictures)
    reference = make_loader(pictures)
    reference.set_epoch(5)
    expected = ids_of(reference)

    assert isinstance(loader.sampler, torch.utils.data.DistributedSampler)
    batches = iter(loader)
    first = next(batches)
    loader.sampler.set_epoch(5)
    assert sorted(ids_of([first, *batches])) == list(range(60))  # Goes on.

    assert ids_of(loader) == expected
    with pytest.raises(leat.InvalidArgument, match="iterate over the DataLoader"):
        iter(loader.sampler)
    assert json.loads(json.dumps(loader.state_dict())) == loader.state_dict()
