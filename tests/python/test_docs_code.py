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
from mds_writer import write_mds
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


@pytest.fixture
def bucket(tmp_path):
    """s3://bucket with the data of the pages: photos/, shards/, mds/ and labels.csv."""
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
    page: dict = {}
    run_page("howto/tokens.md", into=page)

    assert page["inputs"].shape == page["targets"].shape == (64, 1024)
    assert ((page["targets"] - page["inputs"]) % 2**16 == 1).all()


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


def test_how_to_read_shards_of_mds(bucket):
    run_page("howto/mds.md")


def test_how_to_sample(bucket):
    pytest.importorskip("torch", reason="torch is not installed")
    drawn = []
    page: dict = {"train": drawn.append}
    run_page("howto/sampling.md", into=page)

    assert len(drawn) == 7 and len(page["by_engine"]) == 5


def test_how_to_mix(bucket):
    seen = []
    page: dict = {"train": seen.append}
    run_page("howto/mixing.md", into=page)

    assert len(seen) > 5 and len(page["again"].dataset) == 120


def test_how_to_pack(bucket):
    rng = np.random.default_rng(1)
    documents = [[*rng.integers(1, 60_000, int(rng.integers(1, 6000))), 0] for _ in range(60)]
    write(pathlib.Path("served/bucket/corpus/train.bin"), np.array(sum(documents, []), "<u2").tobytes())
    page: dict = {}
    run_page("howto/packing.md", into=page)

    assert page["tokens"].shape == (4, 4096)


def test_how_to_train_on_many_processes(bucket):
    run_page("howto/parallelism.md")


def test_how_to_call_your_own_functions(pictures):
    page: dict = {}
    run_page("howto/your-own-functions.md", into=page)

    batch = next(iter(leat.Loader(pictures, batch_size=6, shuffle=True, ops=page["ops"], output="numpy")))
    assert batch["image"].dtype == np.float32
