"""The code on these pages runs, block after block, and its assertions hold.

Blocks marked `python` are run; those of other libraries, on the pages for people who
come from them, are marked `py`, and are not.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import struct
import subprocess
from collections.abc import Iterable

import numpy as np
import pytest

import leat
from litdata_writer import chunk_of, write_index, write_litdata
from mds_writer import write_mds
from megatron_data import write_corpus
from task_data import make_hub
from small_datasets import encoded, make_pictures, pixels, tar_of, write

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str, into: dict | None = None, **namespace) -> None:
    """Runs its blocks one after another; ``into`` keeps what they defined."""
    namespace = namespace if into is None else into
    page = DOCS / name
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    assert blocks, f"{name} has no code"
    for block in blocks:
        lines_before = text[: block.start(1)].count("\n")
        code = compile("\n" * lines_before + block[1], str(page), "exec")
        exec(code, namespace)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """Pages may write files and set variables; all of it is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def list_of(pictures: Iterable[bytes]) -> bytes:
    """As MDS keeps a list."""
    files = list(pictures)
    return struct.pack(f"<{2 + len(files)}I", 0, len(files), *map(len, files)) + b"".join(files)


def write_tokens(folder: pathlib.Path) -> None:
    """A chunk as LitData writes it for a TokensLoader."""
    data = chunk_of([np.arange(number * 100, number * 100 + 300, dtype="<i4").tobytes() for number in range(9)])
    write(folder / "chunk-0-0.bin", data)
    chunk = {"chunk_bytes": len(data), "chunk_size": 9, "dim": 2700, "filename": "chunk-0-0.bin"}
    write_index(folder, [chunk], "no_header_tensor:16", item_loader="TokensLoader")


@pytest.fixture
def bucket(tmp_path):
    """s3://bucket with the data of the pages: photos/, shards/, mds/, chunks/ and labels.csv."""
    root = tmp_path / "served"
    folder = root / "bucket"
    keys = make_pictures(folder / "photos" / "train", 60)
    for shard in range(2):
        write(folder / "shards" / f"{shard:05}.tar", tar_of([
            member
            for number in range(shard * 20, shard * 20 + 20)
            for member in (
                (f"{number:06}.jpg", encoded(pixels(number), "JPEG")),
                (f"{number:06}.cls", str(number % 3).encode()),
                (f"{number:06}.json", json.dumps({"caption": f"number {number}"}).encode()),
            )
        ]))  # fmt: skip
    columns = {"image": ("jpeg", None), "label": ("int", 8), "caption": ("str", None), "views": ("list[png]", None)}
    write_mds(folder / "mds", columns, [
        {"image": encoded(pixels(number), "JPEG"), "label": (number % 3).to_bytes(8, "little"),
         "caption": f"number {number}".encode(), "views": list_of(encoded(pixels(number)) for _ in range(number % 3 + 1))}
        for number in range(40)
    ], each=15)  # fmt: skip
    shape = {"image": "jpeg", "label": "int", "meta": {"caption": "str"}, "thumbnail": "pil"}
    write_litdata(folder / "chunks", shape, [
        (encoded(pixels(number), "JPEG"), (number % 3).to_bytes(8, "little"), f"number {number}".encode(),
         struct.pack("<3I", 6, 4, 3) + b"RGB" + bytes(6 * 4 * 3))
        for number in range(40)
    ], each=15)  # fmt: skip
    write_tokens(folder / "token-chunks")
    rows = [f"photos/train/{key},{number % 3},{number},no. {number}" for number, key in enumerate(keys)]
    (folder / "labels.csv").write_text("\n".join(["path,class_id,width,caption", *rows]) + "\n")
    write(folder / "corpus" / "train.bin", np.arange(70_000, dtype="<u2").tobytes())
    with leat.testing.Bucket(root, latency="2ms") as served:
        os.environ.update(served.env())
        yield served


def test_the_tutorial():
    pytest.importorskip("sklearn")
    run_page("tutorial.md")


def test_order_tail_and_resume(pictures, small, fresh_cache):
    def load(**options):
        place = {} if "rank" in options or "RANK" in os.environ else {"rank": 0, "world_size": 1}
        return leat.Loader(pictures, **{"shuffle": True, "ids": True, "output": "numpy", **place, **options})

    def ids(batches):
        return [int(i) for batch in batches for i in batch["index"]]

    def verify(*runs):
        command = [leat.testing.find_binary(), "verify", *runs]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stdout + done.stderr

    run_page("order.md", load=load, ids=ids, shards=small, leat=leat, os=os, json=json,
             pytest=pytest, pictures=pictures, verify=verify)  # fmt: skip


@pytest.mark.parametrize("page", sorted(path.name for path in (DOCS / "coming-from").glob("[a-z]*.md")))
def test_coming_from(page, bucket):
    run_page(f"coming-from/{page}", leat=leat, train=lambda *batch: None)


def test_how_to_read_a_table(bucket):
    page: dict = {}
    run_page("howto/labels-in-a-table.md", into=page)

    assert next(iter(page["loader"]))["caption"]


def test_how_to_read_tar_shards(bucket):
    page: dict = {}
    run_page("howto/tar-shards.md", into=page)

    assert page["loader"].dataset.fields == {"jpg": "bytes", "cls": "bytes", "json": "bytes"}


def test_how_to_read_pictures_of_different_sizes(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    for i in range(8):
        write(tmp_path / "uneven" / f"{i}.png", encoded(pixels(i, 20 + i, 40 - i)))
    run_page("howto/unequal-images.md")


def test_how_to_segment_and_detect(bucket):
    root = pathlib.Path("served/bucket").resolve()
    for folder in ("segmented", "detected"):
        members = []
        for number in range(8):
            name, data = f"{number:03}", encoded(pixels(number, 100, 80))
            mask = encoded(pixels(number, 100, 80)[..., 0] % 21)
            found = {"annotations": [{"bbox": [20, 10, 50, 60], "category_id": number}]}
            if folder == "segmented":
                members += [(f"{name}.image", data), (f"{name}.mask", mask)]
            else:
                members += [(f"{name}.jpg", data), (f"{name}.json", json.dumps(found).encode())]
        write(root / folder / "0.tar", tar_of(members))
    run_page("howto/segmentation-and-detection.md")


def test_how_to_look_before_you_train(bucket):
    page: dict = {}
    run_page("howto/look-before-you-train.md", into=page)

    assert "RandomResizedCrop" in repr(page["ops"]) and pathlib.Path("chains.html").read_text().count("<article") == 3


def test_how_to_read_tokens(bucket):
    pytest.importorskip("torch", reason="torch is not installed")
    for name in ("books", "code"):
        write_corpus(pathlib.Path("served/bucket", name), [[list(range(3000))] for _ in range(50)])
    page: dict = {}
    run_page("howto/tokens.md", into=page)

    assert page["inputs"].shape == page["targets"].shape == page["labels"].shape == (64, 1024)
    assert ((page["targets"] - page["inputs"]) % 2**16 == 1).all()
    assert len(page["data"]) == 6400


def test_how_to_read_parquet_files(bucket):
    make_hub(pathlib.Path("served/bucket/pets"))
    run_page("howto/parquet.md")


def test_how_to_read_tfrecords(bucket):
    pytest.importorskip("tfrecord", reason="the package tfrecord is not in Debian: pip install tfrecord")
    from test_tfrecord import file_of, sample

    for shard in range(2):
        file_of(pathlib.Path(f"served/bucket/records/train-{shard:05}-of-00002.tfrecord"), map(sample, range(20)))
    page: dict = {}
    run_page("howto/tfrecord.md", into=page)

    assert page["boxes"].values.dtype == np.float32


def test_how_to_read_arrays(bucket, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py writes the files: pip install h5py")
    zarr = pytest.importorskip("zarr", reason="zarr writes the stores: pip install zarr")
    folder = tmp_path / "served" / "bucket"
    with h5py.File(folder / "sim.h5", "w") as file:
        density = np.arange(40 * 32 * 32, dtype="f4").reshape(40, 32, 32)
        file.create_dataset("density", data=density, chunks=(5, 32, 32), compression="gzip")
        file["labels"] = np.arange(40)
    group = zarr.open_group(folder / "scans.zarr", mode="w")
    for name in ("volume", "mask"):
        group.create_array(name, data=np.arange(48**3, dtype="i4").reshape(48, 48, 48), chunks=(16, 16, 16))
    np.save(folder / "series.npy", np.arange(1000.0))
    run_page("howto/arrays.md")


def test_how_to_read_sound(bucket, tmp_path):
    soundfile = pytest.importorskip("soundfile", reason="soundfile writes the files: pip install soundfile")
    pytest.importorskip("soxr", reason="soxr resamples: pip install soxr")
    for name, rate in (("cat/a.wav", 16000), ("cat/b.flac", 44100), ("dog/a.wav", 22050), ("dog/b.wav", 16000)):
        path = write(tmp_path / "served" / "bucket" / "recordings" / name, b"")
        soundfile.write(path, np.random.default_rng(0).uniform(-1, 1, (9 * rate, 2)), rate)
    page: dict = {}
    run_page("howto/audio.md", into=page)

    assert page["padded"].shape == (4, 9 * 16000)
    assert [batch[0].shape for batch in page["loader"]] == [(8, 1, 16000)]


def test_how_to_read_video(bucket, tmp_path):
    pytest.importorskip("av", reason="PyAV writes the files: pip install av")
    from test_video import put

    for name, frames in (("cat/a.mp4", 60), ("cat/b.mp4", 50), ("dog/a.webm", 50)):
        put(tmp_path / "served" / "bucket" / "videos" / name, frames, codec="libvpx-vp9" if "webm" in name else "libx264")
    page: dict = {}
    run_page("howto/video.md", into=page)

    assert [batch[0].shape for batch in page["loader"]] == [(4, 8, 112, 112, 3), (2, 8, 112, 112, 3)]


def test_how_to_read_shards_of_mds(bucket):
    run_page("howto/mds.md")


def test_how_to_read_chunks_of_litdata(bucket):
    run_page("howto/litdata.md")


def test_how_to_sample(bucket):
    pytest.importorskip("torch", reason="torch is not installed")
    drawn = []

    def train(batch) -> float:
        drawn.append(batch)
        return 1.0

    page: dict = {"train": train}
    run_page("howto/sampling.md", into=page)

    assert len(drawn) == 7 + 3 * 7 and len(page["by_engine"]) == 5


def test_how_to_mix(bucket):
    seen = []
    page: dict = {"train": seen.append}
    run_page("howto/mixing.md", into=page)

    assert len(seen) > 5 and len(page["again"].dataset) == 120


def test_how_to_pack(bucket):
    rng = np.random.default_rng(1)
    documents = [[*rng.integers(1, 60_000, int(rng.integers(1, 6000))), 0] for _ in range(60)]
    write(pathlib.Path("served/bucket/corpus/train.bin"), np.array(sum(documents, []), "<u2").tobytes())
    for number in range(40):
        write(pathlib.Path(f"served/bucket/texts/{number}.txt"), b"a text " * int(rng.integers(1, 60)))
    page: dict = {}
    run_page("howto/packing.md", into=page)

    assert page["tokens"].shape == (4, 512)


def test_how_to_train_on_many_processes(bucket):
    run_page("howto/parallelism.md")


def test_how_to_read_from_a_cloud_function(bucket, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS.parent / "examples/function"))
    page: dict = {}
    run_page("howto/serverless.md", into=page)

    assert sum(page["counts"].values()) == 60 and len(page["counts"]) == 3
    assert (page["mean"] > 0.1).all() and (page["deviation"] > 0.01).all()


def test_how_to_call_your_own_functions(pictures):
    page: dict = {}
    run_page("howto/your-own-functions.md", into=page)

    batch = next(iter(leat.Loader(pictures, batch_size=6, shuffle=True, ops=page["ops"], output="numpy")))
    assert batch["image"].dtype == np.float32
