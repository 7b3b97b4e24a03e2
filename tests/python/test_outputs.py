"""The results of `output=`, `pin_memory=` and `device=`; the device is a fake if
there is none."""

from __future__ import annotations

import contextlib
import importlib.util
import threading

import numpy as np
import pytest
import torch

import leat
from leat._batches._outputs import has_accelerator
from leat.ops import DecodeImage

DECODE = [DecodeImage()]


def load(pictures, **options):
    return leat.Loader(pictures, batch_size=8, shuffle=False, rank=0, world_size=1,
                       **{"ops": DECODE, "batch": "dict", "output": "numpy", **options})  # fmt: skip


class FakeDevice:
    """A device module that writes down what it is asked, in its order."""

    def __init__(self, monkeypatch) -> None:
        self.said: list[str] = []
        self.of_thread = threading.local()
        monkeypatch.setattr(torch, "get_device_module", lambda device: self, raising=False)
        monkeypatch.setattr(torch.Tensor, "pin_memory", lambda t: self._say("pin", t))
        monkeypatch.setattr(torch.Tensor, "to", lambda t, device, non_blocking: self._say(
            f"copy to {device} on {self.of_thread.at}{', not waiting' if non_blocking else ''}", t))  # fmt: skip
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda t, stream: self._say(
            f"keep for {stream.name}", t))  # fmt: skip

    def _say(self, what, tensor=None):
        self.said.append(what)
        return tensor

    def is_available(self):
        return True

    def current_device(self):
        return 3

    def Stream(self, device):
        return FakeStream(self, "side")

    def current_stream(self, device):
        return FakeStream(self, "loop")

    @contextlib.contextmanager
    def stream(self, stream):
        self.of_thread.at = stream.name
        yield
        self.of_thread.at = "loop"


class FakeStream:
    def __init__(self, device, name) -> None:
        self.device, self.name = device, name

    def record_event(self):
        self.device._say(f"mark on {self.name}")
        return self

    def wait_event(self, event):
        self.device._say(f"{self.name} waits for the mark on {event.name}")


def test_a_device_gets_pinned_copies_on_a_stream_of_their_own(pictures, monkeypatch):
    fake = FakeDevice(monkeypatch)
    with load(pictures, output="torch", fields=("image", "label"), device="cuda:1") as loader:
        batch = next(iter(loader))

    copied = ["pin", "pin", *2 * ["copy to cuda:1 on side, not waiting"], "mark on side"]
    handed_over = ["loop waits for the mark on side", "keep for loop", "keep for loop"]
    # The next one's copy, by another thread, may come between.
    assert [each for each in fake.said if each not in copied] == handed_over
    assert sorted({*fake.said} - {*handed_over}) == sorted({*copied})
    assert fake.said.index("mark on side") < fake.said.index(handed_over[0])
    assert batch["label"].tolist() == [0] * 8


def test_ragged_fields_go_too_and_texts_stay(pictures, monkeypatch):
    fake = FakeDevice(monkeypatch)
    with load(pictures, ops=(), output="torch", fields=("data", "key"), device="cuda") as loader:
        batch = next(iter(loader))

    assert isinstance(batch["data"], leat.Ragged) and batch["key"][0] == "ant/00000.png"
    assert fake.said.count("pin") in (2, 4)  # Values and offsets; the next batch's may have been copied, too.
    assert "copy to cuda:3 on side, not waiting" in fake.said  # The current device of the thread that made the loader.


def test_the_state_is_of_what_was_delivered_not_copied_ahead(pictures, monkeypatch):
    FakeDevice(monkeypatch)
    with load(pictures, output="torch", device="cuda") as loader:
        batches = iter(loader)
        next(batches)
        assert loader.state_dict()["position"] == 8


def test_pinning_alone_is_torchs_host_allocators(pictures, monkeypatch):
    fake = FakeDevice(monkeypatch)
    monkeypatch.setattr("leat._batches._outputs.has_accelerator", lambda: True)
    with load(pictures, output="torch", fields=("image",), pin_memory=True) as loader:
        next(iter(loader))

    assert set(fake.said) == {"pin"}


@pytest.mark.skipif(has_accelerator(), reason="there is an accelerator")
def test_without_a_device_pinning_warns_and_a_device_is_refused(pictures):
    with pytest.warns(UserWarning, match="no accelerator"):
        loader = load(pictures, output="torch", pin_memory=True)
    assert not next(iter(loader))["image"].is_pinned()
    with pytest.raises(leat.InvalidArgument, match='device="cuda": torch finds none here'):
        load(pictures, output="torch", device="cuda")
    with load(pictures, output="torch", device="cpu") as loader:
        assert next(iter(loader))["image"].device.type == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_cuda_device_gets_the_same_values(pictures):
    with load(pictures, output="torch") as here, load(pictures, output="torch", device="cuda") as there:
        for expected, batch in zip(here, there):
            assert batch["image"].is_cuda
            assert torch.equal(batch["image"].cpu(), expected["image"])


@pytest.mark.parametrize(("options", "says"), [
    ({"output": "numpy", "device": "cuda"}, 'device=\'cuda\' needs output="torch"'),
    ({"output": "jax", "pin_memory": True}, 'pin_memory=True needs output="torch"'),
])
def test_what_cannot_be_sent_is_refused(pictures, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        load(pictures, **options)


NEEDS_JAX = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed: pip install jax"
)


@NEEDS_JAX
def test_jax_gets_the_same_values(pictures):
    import jax

    with load(pictures) as here, load(pictures, output="jax") as there:
        for expected, batch in zip(here, there):
            assert isinstance(batch["image"], jax.Array)
            np.testing.assert_array_equal(batch["image"], expected["image"])
            assert batch["label"].tolist() == expected["label"].tolist()


@NEEDS_JAX
def test_to_jax_a_batch_is_a_tree_of_its_fields(pictures):
    import jax

    with load(pictures, output="jax") as loader:
        batch = next(iter(loader))
    doubled = jax.jit(lambda batch: jax.tree_util.tree_map(lambda x: x * 2, batch))(batch)

    assert type(doubled) is type(batch) and list(doubled) == ["image", "label"]
    assert (doubled["image"] == batch["image"] * 2).all()


@NEEDS_JAX
def test_jax_keeps_the_slot_until_its_array_is_gone(pictures):
    with load(pictures, output="jax") as loader:
        batches = [batch["image"] for batch in loader]
    with load(pictures) as loader:
        for kept, batch in zip(batches, loader):
            np.testing.assert_array_equal(kept, batch["image"])


@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="jax is installed")
def test_without_jax_it_is_said_what_to_install(pictures):
    with pytest.raises(leat.InvalidArgument, match="pip install jax"):
        load(pictures, output="jax")
