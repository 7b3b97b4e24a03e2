"""Programs that test_frameworks_apart.py runs, each in a process of its own: they import a framework
that lies apart (tools/frameworks-requirements.txt), and print one JSON object.

    python frameworks_apart.py tf|keras|keras_torch|jax FOLDER_OF_PICTURES
"""

from __future__ import annotations

import json
import logging
import os
import pathlib
import sys

import numpy as np

import leat
from leat.ops import Cast, DecodeImage, Normalize, PadTo, RandomHorizontalFlip

OPS = [DecodeImage(layout="HWC"), RandomHorizontalFlip()]


def load(folder: str, **options) -> leat.Loader:
    usual = {"batch_size": 8, "train": True, "seed": 1, "fields": ("image", "label", "index"), "ops": OPS, "output": "numpy"}
    return leat.Loader(folder, **{**usual, **options})


def error_of(make) -> str:
    try:
        make()
    except Exception as error:  # Also one that TensorFlow has wrapped.
        return str(error)
    return ""


def tf(folder: str) -> dict:
    import tensorflow

    import leat._batches._frameworks

    told: dict = {}
    with load(folder) as loader, load(folder) as plain:
        dataset = loader.to_tf()
        told["spec"] = [str(one) for one in dataset.element_spec]
        epochs, positions = [], []
        for _ in range(2):
            expected = [[each.tolist() for each in batch] for batch in plain]
            found = []
            for batch in dataset:
                found.append([each.numpy().tolist() for each in batch])
                positions.append(loader.state_dict()["position"])
            epochs.append(found == expected and len(found) == len(loader))
        told.update(epochs=epochs, positions=positions)
    with load(folder) as loader:
        dataset = loader.to_tf()
        first = iter(dataset)
        for _ in range(3):
            next(first)
        state, rest = loader.state_dict(), [batch[2].numpy().tolist() for batch in first]
    with load(folder) as loader:
        loader.load_state_dict(state)
        told["resumed"] = [batch[2].numpy().tolist() for batch in loader.to_tf()] == rest and len(rest) > 2

    places = []
    real = leat._batches._frameworks.as_numpy
    leat._batches._frameworks.as_numpy = lambda value: places.append(value.ctypes.data) or real(value)
    with load(folder, fields=("image",)) as loader:
        dataset = loader.to_tf()
        for (image,) in dataset:
            told.setdefault("is_copied", []).append(np.asarray(memoryview(image)).ctypes.data != places[-1])
            told.setdefault("is_aligned", []).append(places[-1] % 64 == 0)
    leat._batches._frameworks.as_numpy = real

    with load(folder, batch="dict", fields={"raw": "data", "name": "key"}, ops=(), train=False, drop_last=False) as loader:
        dataset = loader.to_tf()
        told["ragged_spec"] = {name: str(one) for name, one in dataset.element_spec.items()}
        raw = [bytes(row.numpy()) for batch in dataset for row in batch["raw"]]
        names = [name.decode() for batch in dataset for name in batch["name"].numpy()]
        told["ragged"] = raw == [loader.dataset[number]["data"] for number in range(60)]
        told["names"] = names == [loader.dataset.key(number) for number in range(60)]

    uneven = os.path.join(os.path.dirname(folder), "uneven")
    with leat.Loader(uneven, batch_size=3, train=False, fields=("image",), ops=[DecodeImage(ragged=True)], output="numpy") as loader:
        pictures = [image for (batch,) in loader for image in batch]
        loader.set_epoch(0)
        told["pictures"] = all(
            (one.to_tensor().numpy() == two).all() and one.ragged_rank <= 2
            for one, two in zip((row for (batch,) in loader.to_tf() for row in batch), pictures)
        )
    with leat.Loader(uneven, batch_size=3, train=False, fields=("image",), ops=[DecodeImage(), PadTo()], output="numpy") as loader:
        told["padded"] = [list(batch.shape) for (batch,) in loader.to_tf()]
    with leat.Loader(uneven, batch_size=1, train=False, fields=("image",), ops=[DecodeImage()], output="numpy") as loader:
        told["alone"] = [list(batch.shape) for (batch,) in loader.to_tf()]
    with load(folder, collate=lambda rows: 3) as loader:
        told["collated"] = error_of(loader.to_tf)
    if "torch" in sys.modules or os.environ.get("WITH_TORCH"):
        with load(folder, output="torch") as loader:
            told["torch"] = all(isinstance(batch[0], tensorflow.Tensor) for batch in loader.to_tf())
    return told


def keras(folder: str) -> dict:
    import keras

    keras.utils.set_random_seed(1)
    options = {"fields": ("image", "label"), "ops": [DecodeImage(layout="HWC"), Normalize("imagenet")]}
    with load(folder, **options) as loader:
        model = keras.Sequential([keras.layers.Input((10, 12, 3)), keras.layers.Flatten(), keras.layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        steps: list[int] = []

        class Count(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None) -> None:
                steps.append(batch)

        def batches():
            while True:
                yield from loader

        given = {"x": batches(), "steps_per_epoch": len(loader)}
        if sys.argv[1] == "keras":
            given = {"x": loader.to_tf()}
        done = model.fit(**given, epochs=3, verbose=0, callbacks=[Count()])
        return {"backend": keras.backend.backend(), "losses": done.history["loss"], "steps": steps, "length": len(loader)}


def jax(folder: str) -> dict:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    devices = np.array(jax.devices())
    sharding = NamedSharding(Mesh(devices, ("data",)), PartitionSpec("data"))
    told: dict = {"devices": len(devices)}
    with load(folder) as loader, load(folder) as plain:
        batches = loader.to_jax(sharding)
        told["length"] = [len(batches), len(loader)]
        same, positions, spread = [], [], []
        for found, expected in zip(batches, plain):
            same.append(all((np.asarray(one) == two).all() for one, two in zip(found, expected)))
            spread.append([len(one.addressable_shards) for one in found] + [one.sharding == sharding for one in found])
            positions.append(loader.state_dict()["position"])
            rows = [shard.data.shape[0] for shard in found[0].addressable_shards]
        told.update(same=same, positions=positions, spread=spread, rows=rows)
        mean = jax.jit(lambda image: image.astype("float32").mean())(found[0])
        told["mean"] = abs(float(mean) - float(expected[0].mean())) < 1e-3
    with load(folder, batch="dict", fields=["image", "label"], ops=[DecodeImage(), Cast()]) as loader:
        whole = NamedSharding(sharding.mesh, PartitionSpec())
        batch = next(iter(loader.to_jax({"image": sharding, "label": whole})))
        told["by_field"] = [batch["image"].sharding == sharding, batch["label"].sharding == whole]
        told["no_sharding"] = error_of(lambda: next(iter(loader.to_jax({"image": sharding}))))
    with load(folder, fields=("data",), ops=()) as loader:
        told["ragged"] = error_of(lambda: next(iter(loader.to_jax(sharding))))
    with load(folder, rank=0, world_size=2) as loader:
        told["ranks"] = error_of(lambda: loader.to_jax(sharding))
    with load(folder, collate=lambda rows: {"x": np.arange(8) + 2**40}) as loader:
        told["long"] = error_of(lambda: next(iter(loader.to_jax(sharding))))
    told["64 bits"] = jax_of_one_device(pathlib.Path(folder).parent)
    return told


def jax_of_one_device(folder: pathlib.Path) -> dict:
    """Whether output="jax" keeps numbers of 64 bits, or the error."""
    told: dict = {}
    lines: list[str] = []
    logging.getLogger("leat").addHandler(listener := logging.Handler())
    listener.setLevel(logging.WARNING)
    listener.emit = lambda record: lines.append(record.getMessage())
    for name, values in (("int64", np.arange(40) + 2**40), ("uint64", np.arange(40, dtype="u8") + 2**63),
                         ("float64", np.arange(40) / 3), ("int64 of 32 bits", np.arange(40) - 2**31)):  # fmt: skip
        np.save(path := folder / f"{name}.npy", values)
        dataset = leat.Dataset.tokens(path, dtype=values.dtype, seq_len=10)
        with leat.Loader(dataset, batch_size=2, train=False, fields=("tokens",), output="jax") as loader:
            found: list = []
            error = error_of(lambda: found.extend(np.asarray(batch[0]) for batch in loader))
            told[name] = error or bool((np.concatenate(found).ravel() == values.astype(found[0].dtype)).all())
    told["warnings"] = lines
    return told


if __name__ == "__main__":
    program = {"tf": tf, "keras": keras, "keras_torch": keras, "jax": jax}[sys.argv[1]]
    print(json.dumps(program(sys.argv[2])))
