"""`leat pack`: shards of any source, as our reader and the format's own read them; stopped and called again."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

import leat
from leat._diff import differences
from leat._shards import _plan, _write
from leat._shards._resize import pictures_of
from leat._shards._row import Field
from leat.ops import LoadMdsArray
from leat.testing import find_binary
from mds_writer import write_mds
from small_datasets import encoded, make_pictures, make_shards, pixels, tar_of, write
from task_data import make_hub

PEERS = pathlib.Path(sys.prefix) / "peers"


def pack(dataset, dest: pathlib.Path, format: str = "tar", shard_bytes: int = 3000, **options) -> dict:
    return _write.write(_plan.plan_of(leat.Dataset(dataset) if isinstance(dataset, (str, pathlib.Path)) else dataset,
                                      format, shard_bytes, **options), str(dest), {})  # fmt: skip


def files_in(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def without_a_file(folder: pathlib.Path, row: int) -> leat.Dataset:
    """A table whose row names none."""
    paths = [str(path) for path in sorted(folder.rglob("*.png"))[:4]]
    paths[row] = ""
    write(folder.parent / "table.csv", "\n".join(["path,id", *(f"{path},x" for path in paths)]).encode())
    return leat.Dataset.from_manifest(folder.parent / "table.csv", fields={"image": "path"})


def samples_of(dataset: leat.Dataset) -> list[dict]:
    return [dataset[number] for number in range(len(dataset))]


# --- Tar ---------------------------------------------------------------------


def test_a_folder_of_classes_becomes_tar_shards(pictures, tmp_path, fresh_cache):
    before = leat.Dataset(pictures)
    told = pack(before, tmp_path / "out")

    after = leat.Dataset(tmp_path / "out")
    assert told["samples"] == len(after) == 60 and told["shards"] > 5 and told["there"] == 0
    assert after.fields == {"png": "bytes", "cls": "bytes"}
    assert [(s["png"], int(s["cls"])) for s in samples_of(after)] == [(s["data"], s["label"]) for s in samples_of(before)]
    index = json.loads((tmp_path / "out/index.json").read_text())
    assert index["wids_version"] == 1 and index["classes"] == ["ant", "bee", "cat"]
    for shard in index["shardlist"]:
        data = (tmp_path / "out" / shard["url"]).read_bytes()
        assert (len(data), hashlib.md5(data).hexdigest()) == (shard["filesize"], shard["md5sum"])
    assert sum(shard["nsamples"] for shard in index["shardlist"]) == 60


def test_webdataset_reads_them_as_they_were(pictures, tmp_path):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    before = leat.Dataset(pictures)
    pack(before, tmp_path / "out")

    urls = [str(path) for path in sorted((tmp_path / "out").glob("*.tar"))]
    found = [(sample["png"], int(sample["cls"])) for sample in webdataset.WebDataset(urls, shardshuffle=False)]

    assert found == [(sample["data"], sample["label"]) for sample in samples_of(before)]


def test_shards_of_one_size_become_shards_of_another(tmp_path):
    make_shards(tmp_path / "in", 5, 20, 3000)
    told = pack(tmp_path / "in", tmp_path / "out", shard_bytes=30_000)

    assert samples_of(leat.Dataset(tmp_path / "out")) == samples_of(leat.Dataset(tmp_path / "in"))
    sizes = [path.stat().st_size for path in (tmp_path / "out").glob("*.tar")]
    assert told["shards"] == len(sizes) > 5 and max(sizes) < 60_000


def test_samples_that_lack_a_field_lack_it_afterwards(tmp_path):
    members = [("0.a", b"1"), ("0.b", b"2"), ("1.a", b"3"), ("2.b", b"4")]
    write(tmp_path / "in/0.tar", tar_of(members))
    pack(tmp_path / "in", tmp_path / "out")

    found = samples_of(leat.Dataset(tmp_path / "out"))
    assert found == [{"a": b"1", "b": b"2"}, {"a": b"3", "b": None}, {"a": None, "b": b"4"}]


def test_rows_of_parquet_and_a_table_become_tar_shards(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    make_hub(tmp_path / "hub")
    pack(tmp_path / "hub", tmp_path / "out", shard_bytes=20_000)
    before, after = samples_of(leat.Dataset(tmp_path / "hub")), samples_of(leat.Dataset(tmp_path / "out"))
    assert [(s["image"], s["label"]) for s in before] == [(s["image"], int(s["cls"])) for s in after]

    make_pictures(tmp_path / "p", 4)
    rows = [f"{path.relative_to(tmp_path)},{i / 3!r},grün {i}" for i, path in enumerate(sorted((tmp_path / "p").rglob("*.png")))]
    (tmp_path / "t.csv").write_text("\n".join(["path,score,word", *rows]))
    table = leat.Dataset.from_manifest(tmp_path / "t.csv", fields={"image": "path"}, columns=["score", "word"])
    pack(table, tmp_path / "table")
    for number, sample in enumerate(samples_of(leat.Dataset(tmp_path / "table"))):
        assert sample["image"] == table[number]["image"] and sample["word"].decode() == f"grün {number}"
        assert float(sample["score"]) == number / 3


# --- MDS and tokens ----------------------------------------------------------

COLUMNS = {
    "image": ("png", None), "n": ("int", 8), "share": ("float64", 8), "word": ("str", None),
    "row": ("ndarray:uint16:3", 6), "one": ("float32", 4),
}  # fmt: skip


def mds_samples(count: int) -> list[dict[str, bytes]]:
    return [
        {"image": encoded(pixels(number)), "n": number.to_bytes(8, "little"), "share": np.float64(number / 7).tobytes(),
         "word": f"w{number}".encode(), "row": np.arange(number, number + 3, dtype="<u2").tobytes(),
         "one": np.float32(number / 3).tobytes()}
        for number in range(count)
    ]  # fmt: skip


def plain(sample: dict) -> dict:
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in sample.items()}


def test_a_folder_becomes_shards_of_mds(pictures, tmp_path):
    before = leat.Dataset(pictures)
    told = pack(before, tmp_path / "out", "mds")

    after = leat.Dataset(tmp_path / "out")
    assert told["shards"] > 5 and after.fields == {"data": "bytes", "label": "bytes"}
    assert [plain(sample) for sample in samples_of(after)] == samples_of(before)
    index = json.loads((tmp_path / "out/index.json").read_text())
    for shard in index["shards"]:
        data = (tmp_path / "out" / shard["raw_data"]["basename"]).read_bytes()
        assert shard["raw_data"]["hashes"]["sha1"] == hashlib.sha1(data).hexdigest()


def test_shards_of_mds_become_others(tmp_path):
    write_mds(tmp_path / "in", COLUMNS, mds_samples(40), each=15)
    pack(leat.Dataset(tmp_path / "in"), tmp_path / "out", "mds")

    before, after = leat.Dataset(tmp_path / "in"), leat.Dataset(tmp_path / "out")
    assert [plain(s) for s in samples_of(after)] == [plain(s) for s in samples_of(before)]
    assert {name: rows.dtype for name, rows in after._dtypes.items()} == {name: rows.dtype for name, rows in before._dtypes.items()}


READ = """
import json, sys, hashlib
import numpy as np
import torchvision_apart
torchvision_apart.load()
from streaming.base.format import reader_from_json
def plain(value):
    if isinstance(value, np.ndarray) and value.ndim:
        return [value.dtype.name, value.tolist()]
    if hasattr(value, "mode"):
        return hashlib.sha1(np.asarray(value).tobytes()).hexdigest()
    return value.decode() if isinstance(value, bytes) else float(value)
def read(folder):
    for entry in json.load(open(folder + "/index.json"))["shards"]:
        reader = reader_from_json(folder, "", entry)
        reader.validate(False)
        yield from ({name: plain(value) for name, value in reader[number].items()} for number in range(reader.samples))
print(json.dumps([[*read(folder)] for folder in sys.argv[1:]]))
"""


def test_streaming_reads_them_as_they_were(tmp_path):
    if not (PEERS / "streaming").is_dir():
        pytest.skip("mosaicml-streaming is not there: see tools/peer-requirements.txt")
    write_mds(tmp_path / "in", COLUMNS, mds_samples(40), each=15)
    write(tmp_path / "corpus/0.bin", np.arange(1000, dtype="<u2").tobytes())
    pack(leat.Dataset(tmp_path / "in"), tmp_path / "out", "mds")
    pack(leat.Dataset.tokens(tmp_path / "corpus", dtype="uint16", seq_len=300, eos=299), tmp_path / "documents", "mds")
    places = [str(pathlib.Path(__file__).parent), str(PEERS), str(PEERS.with_name("oracle")), os.environ.get("PYTHONPATH", "")]

    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path / "out"), str(tmp_path / "documents")],
                          capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(places)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    rows, documents = json.loads(done.stdout.splitlines()[-1])

    picture = [hashlib.sha1(pixels(number).tobytes()).hexdigest() for number in range(40)]
    assert rows == [
        {"image": picture[number], "n": number, "share": number / 7, "word": f"w{number}",
         "row": ["uint16", [number, number + 1, number + 2]], "one": float(np.float32(number / 3))}
        for number in range(40)
    ]  # fmt: skip
    assert documents[0] == {"tokens": ["uint16", [*range(300)]]}


def test_what_is_no_picture_among_pictures_is_refused(tmp_path):
    make_pictures(tmp_path / "in", 9)
    write(tmp_path / "in/bee/00004.png", b"no picture")
    with pytest.raises(leat.InvalidArgument, match="sample 4: the field 'data' is no picture"):
        pack(tmp_path / "in", tmp_path / "out", "mds")
    assert not (tmp_path / "out/index.json").exists()


def test_documents_become_arrays_of_mds_and_token_files(tmp_path, fresh_cache):
    rng = np.random.default_rng(3)
    documents = [np.array([*rng.integers(1, 60_000, int(size)), 0], "<u2") for size in rng.integers(1, 400, 30)]
    write(tmp_path / "in/0.bin", np.concatenate(documents).tobytes())
    corpus = leat.Dataset.tokens(tmp_path / "in", dtype="uint16", seq_len=1000, eos=0)
    pack(corpus, tmp_path / "mds", "mds")
    with leat.Loader(tmp_path / "mds", batch_size=7, train=False, fields=("tokens",), output="numpy",
                     ops=[LoadMdsArray("tokens", dtype="uint16", ragged=True)]) as loader:  # fmt: skip
        found = [row for (batch,) in loader for row in batch]
    assert [row.tolist() for row in found] == [row.tolist() for row in samples_of_tokens(corpus)]

    told = pack(corpus, tmp_path / "tokens", "tokens")
    assert told["shards"] > 3
    again = leat.Dataset.tokens(tmp_path / "tokens", dtype="uint16", seq_len=1000, eos=0)
    assert np.concatenate(samples_of_tokens(again)).tobytes() == np.concatenate(documents).tobytes()


def samples_of_tokens(corpus: leat.Dataset) -> list[np.ndarray]:
    return [sample["tokens"] for sample in samples_of(corpus)]


def test_windows_of_tokens_stay_windows(tmp_path):
    write(tmp_path / "in/0.bin", np.arange(20_000, dtype="<u4").tobytes())
    windows = leat.Dataset.tokens(tmp_path / "in", dtype="uint32", seq_len=100)
    told = pack(windows, tmp_path / "out", "tokens")

    again = leat.Dataset.tokens(tmp_path / "out", dtype="uint32", seq_len=100)
    assert told["shards"] > 10
    assert [row.tolist() for row in samples_of_tokens(again)] == [row.tolist() for row in samples_of_tokens(windows)]


def test_numbers_and_arrays_keep_their_names_in_a_tar(tmp_path):
    samples = mds_samples(9)
    write_mds(tmp_path / "mds", COLUMNS, samples)
    before = leat.Dataset.mds(tmp_path / "mds")
    pack(before, tmp_path / "out", shard_bytes=400)
    pack(tmp_path / "out", tmp_path / "again", shard_bytes=600)

    for place in ("out", "again"):
        after = leat.Dataset(tmp_path / place)
        assert sorted(after.fields) == ["image", "n", "one", "row.npy", "share", "word"]
        for number, sample in enumerate(after):
            assert sample["image"] == samples[number]["image"] and sample["n"] == b"%d" % number
            assert float(sample["share"]) == number / 7 and np.float32(float(sample["one"])) == np.float32(number / 3)
            row = np.load(io.BytesIO(sample["row.npy"]))
            assert row.dtype == np.uint16 and row.tolist() == [number, number + 1, number + 2]


def test_the_label_of_shards_of_mds_keeps_its_name(tmp_path):
    columns = {"image": ("bytes", None), "label": ("int", 8)}
    write_mds(tmp_path / "mds", columns, [{"image": b"x%d" % number, "label": number.to_bytes(8, "little")} for number in range(3)])
    pack(leat.Dataset.mds(tmp_path / "mds"), tmp_path / "out")
    assert [dict(sample) for sample in leat.Dataset(tmp_path / "out")] == [
        {"image": b"x%d" % number, "label": b"%d" % number} for number in range(3)
    ]


# --- Smaller pictures --------------------------------------------------------


def test_large_pictures_become_small_ones_and_small_ones_stay(tmp_path):
    turned = io.BytesIO()
    image = Image.fromarray(pixels(1, 200, 100))
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(turned, "JPEG", exif=exif)
    write(tmp_path / "in/a/0.jpg", turned.getvalue())
    write(tmp_path / "in/a/1.jpg", encoded(pixels(2, 90, 50), "JPEG"))
    write(tmp_path / "in/b/2.png", encoded(pixels(3, 60, 300)))
    pack(tmp_path / "in", tmp_path / "out", resize=50, quality=80)

    first, second, third = samples_of(leat.Dataset(tmp_path / "out"))
    sizes = [Image.open(io.BytesIO(sample["jpg"])).size for sample in (first, second, third)]
    assert sizes == [(50, 100), (90, 50), (50, 250)]
    assert second["jpg"] == (tmp_path / "in/a/1.jpg").read_bytes()


def test_a_mask_beside_a_picture_is_not_made_a_jpeg(tmp_path):
    for number in range(3):
        write(tmp_path / f"in/{number}.jpg", encoded(pixels(number, 90, 50), "JPEG"))
        write(tmp_path / f"in/{number}.mask.png", encoded(np.full((50, 90), number, np.uint8)))
        write(tmp_path / f"in/{number}.right.jpg", encoded(pixels(number + 5, 90, 50), "JPEG"))
    rows = [f"{number}.jpg,{number}.mask.png,{number}.right.jpg" for number in range(3)]
    write(tmp_path / "in/table.csv", "\n".join(["image,mask,right", *rows]).encode())
    made = leat.Dataset.from_manifest(
        tmp_path / "in/table.csv", fields={"image": "image", "mask": "mask", "right": "right"}
    )
    with pytest.raises(leat.InvalidArgument, match="'image', 'mask', 'right' hold pictures.*mask.*--fields"):
        pack(made, tmp_path / "out", resize=8)
    assert not (tmp_path / "out").exists()

    pack(made, tmp_path / "out", resize=8, fields=["image", "right"])
    for sample in samples_of(leat.Dataset(tmp_path / "out")):
        assert [min(Image.open(io.BytesIO(sample[name])).size) for name in ("image", "right")] == [8, 8]


@pytest.mark.parametrize(("column", "says"), [
    ("mask", "'image', 'mask' hold pictures"), ("boxes", "'boxes' would no longer fit"),
])  # fmt: skip
def test_what_one_sample_alone_has_beside_its_picture_is_noticed(tmp_path, column, says):
    write(tmp_path / "in/0.jpg", encoded(pixels(0, 90, 50), "JPEG"))
    write(tmp_path / "in/7.mask", encoded(np.full((50, 90), 7, np.uint8)))
    write(tmp_path / "in/7.boxes", b"[[1, 2, 30, 40]]")
    rows = [f"0.jpg,{f'7.{column}' if number == 7 else ''}" for number in range(100)]
    write(tmp_path / "in/table.csv", "\n".join([f"image,{column}", *rows]).encode())
    made = leat.Dataset.from_manifest(tmp_path / "in/table.csv", fields={"image": "image", column: column})
    with pytest.raises(leat.InvalidArgument, match=says):
        pack(made, tmp_path / "out", resize=8)


@pytest.mark.parametrize("name", ["boxes", "gt_bboxes", "image.keypoints", "bbox"])
def test_boxes_in_pixels_would_not_fit_a_smaller_picture(name):
    fields = [Field("image", "bytes", "image"), Field(name, "rows", name)]
    boxes = np.array([[1, 2, 30, 40]], np.float32)
    picture = encoded(pixels(0, 90, 50), "JPEG")
    with pytest.raises(leat.InvalidArgument, match=f"'{name}' would no longer fit.*--fields"):
        pictures_of(fields, [{"image": picture, name: boxes}])
    assert pictures_of(fields, [{"image": picture, name: boxes / 90}]) == {"image"}
    assert pictures_of(fields, [{"image": b"no picture", name: boxes}]) == frozenset()


# --- Stopped and called again ------------------------------------------------


def test_a_call_goes_on_where_another_stopped(pictures, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    pack(pictures, whole)
    real = _write._put
    for stops_after in range(0, 12, 3):
        part = tmp_path / f"part{stops_after}"
        count = iter(range(100))

        def put(*given, stops_after=stops_after, count=count):
            if next(count) >= stops_after:
                raise OSError("the machine is gone")
            return real(*given)

        monkeypatch.setattr(_write, "_put", put)
        with pytest.raises(OSError, match="gone"):
            pack(pictures, part)
        assert not (part / "index.json").exists()
        monkeypatch.setattr(_write, "_put", real)
        told = pack(pictures, part)
        assert told["there"] == stops_after
        assert files_in(part) == files_in(whole)


def test_a_shard_without_its_note_or_of_another_size_is_written_again(pictures, tmp_path):
    told = pack(pictures, tmp_path / "out")
    before = files_in(tmp_path / "out")
    (tmp_path / "out/000001.tar").write_bytes(b"torn")
    (tmp_path / "out/.leat/pack/000003.tar.json").unlink()
    (tmp_path / "out/.leat/pack/000004.tar.json").write_text("{")

    again = pack(pictures, tmp_path / "out")

    assert again["there"] == told["shards"] - 3 and files_in(tmp_path / "out") == before


def test_a_place_of_other_shards_is_refused(pictures, tmp_path):
    pack(pictures, tmp_path / "out")
    with pytest.raises(leat.InvalidArgument, match="other data, or of other options"):
        pack(pictures, tmp_path / "out", shard_bytes=5000)
    write(tmp_path / "mine/000000.tar", b"mine")
    with pytest.raises(leat.InvalidArgument, match="leat pack did not write it"):
        pack(pictures, tmp_path / "mine")
    assert (tmp_path / "mine/000000.tar").read_bytes() == b"mine"


def test_a_place_of_another_version_of_leat_is_refused_by_both_names(pictures, tmp_path, monkeypatch):
    note = tmp_path / "out/.leat/pack/plan"
    with monkeypatch.context() as older:
        older.setattr(_plan, "__version__", "0.0.7")
        pack(pictures, tmp_path / "out")
        pack(pictures, tmp_path / "out")
    before = files_in(tmp_path / "out")
    here = re.escape(leat.__version__)
    with pytest.raises(leat.InvalidArgument, match=rf"Leat 0\.0\.7 wrote.*this Leat, {here},.*with Leat 0\.0\.7"):
        pack(pictures, tmp_path / "out")
    with pytest.raises(leat.InvalidArgument, match="other data, or of other options: give"):
        pack(pictures, tmp_path / "out", shard_bytes=5000)
    assert files_in(tmp_path / "out") == before
    note.write_text(note.read_text().split("leat-")[0])  # As versions wrote it that did not say which they were.
    with pytest.raises(leat.InvalidArgument, match="other options, or of another version of Leat"):
        pack(pictures, tmp_path / "out")


@pytest.mark.parametrize("is_bucket", [False, True])
def test_a_call_sees_that_objects_were_written_anew(tmp_path, fresh_cache, is_bucket):
    """The same names and lengths, so that half of the shards would have what was before, and half what is now."""
    make_pictures(tmp_path / "bucket/in", 12)
    with leat.testing.Bucket(tmp_path, latency="0ms") as bucket:
        store = {"endpoint_url": bucket.url, "no_sign_request": True} if is_bucket else {}
        url = "s3://bucket/in" if is_bucket else tmp_path / "bucket/in"

        def again(url=url) -> dict:
            (tmp_path / "out/.leat/pack/000001.tar.json").unlink(missing_ok=True)
            return pack(leat.Dataset(url, storage_options=store, refresh="always"), tmp_path / "out")

        told = again()
        assert told["shards"] > 1 and again()["there"] == told["shards"] - 1
        if not is_bucket:  # As on another machine, with the times that the files had.
            shutil.copytree(tmp_path / "bucket/in", tmp_path / "copy")
            assert again(tmp_path / "copy")["there"] == told["shards"] - 1
        path = tmp_path / "bucket/in/ant/00001.png"
        write(path, path.read_bytes()[::-1])
        with pytest.raises(leat.InvalidArgument, match="written anew.*other ETags or times"):
            again()


@pytest.mark.parametrize(("make", "format", "options", "says"), [
    (lambda p: leat.Dataset(p), "tokens", {}, "takes one field of numbers"),
    (lambda p: leat.Dataset(p), "tar", {"fields": ["colour"]}, "--fields names 'colour'"),
    (lambda p: leat.mix({"a": (leat.Dataset(p), 1.0), "b": (leat.Dataset(p)[:9], 1.0)}), "tar", {}, "pack each of its sources"),
    (lambda p: leat.Dataset(p), "tar", {"resize": 0}, "--resize 0"),
    (lambda p: without_a_file(p, 2), "tar", {}, "sample 2 .* has none of the fields image"),
])  # fmt: skip
def test_what_cannot_be_packed_is_refused(pictures, tmp_path, make, format, options, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        pack(make(pictures), tmp_path / "out", format, **options)
    assert not (tmp_path / "out").exists()


def test_cuts_are_of_at_most_so_many_bytes_and_leave_nothing_out():
    rng = random.Random(4)
    for _ in range(300):
        sizes = np.array([rng.choice([0, 1, 5, 50, 500]) for _ in range(rng.randrange(1, 60))], float)
        most = rng.randrange(1, 300)
        ranges = _plan.cut(sizes, most)
        assert [number for begin, end in ranges for number in range(begin, end)] == list(range(len(sizes)))
        for begin, end in ranges:
            assert sizes[begin:end].sum() <= most or end - begin == 1


# --- The command -------------------------------------------------------------


def run(*words: object, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_binary(), "pack", *map(str, words)], capture_output=True, text=True, check=False, **options)


def test_the_command_packs_from_a_bucket_into_a_bucket(tmp_path, fresh_cache):
    make_pictures(tmp_path / "store/in", 60)
    (tmp_path / "store/out").mkdir()
    with leat.testing.Bucket(tmp_path / "store", latency="2ms") as bucket:
        environment = {**os.environ, **bucket.env()}
        done = run("s3://in", "s3://out/shards", "--shard-bytes", "5kB", "--json", env=environment)
        again = run("s3://in", "s3://out/shards", "--shard-bytes", "5kB", env=environment)

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["samples"] == 60 and told["shards"] > 3 and told["index"].endswith("out/shards/index.json")
    assert f"{told['shards']} of them were there already" in again.stdout
    assert [s["png"] for s in samples_of(leat.Dataset(tmp_path / "store/out/shards"))] == [
        s["data"] for s in samples_of(leat.Dataset(tmp_path / "store/in"))
    ]


def test_ctrl_c_ends_it_in_an_outage(tmp_path):
    """The plan is written, and the shards wait for the store."""
    make_pictures(tmp_path / "in", 40)
    (tmp_path / "store/out").mkdir(parents=True)
    with leat.testing.Bucket(tmp_path / "store", latency="1ms", fault_script="after 0 PUT 0 503 x*") as bucket:
        process = subprocess.Popen(
            [find_binary(), "pack", tmp_path / "in", "s3://out", "--shard-bytes", "3000"], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **bucket.env()},
        )  # fmt: skip
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 1
    assert time.monotonic() - begun < 10
    assert process.stderr.read().endswith("leat: stopped\n")
    assert (tmp_path / "store/out/.leat/pack/plan").exists()


def test_a_killed_command_loses_nothing(tmp_path, fresh_cache):
    make_pictures(tmp_path / "store/in", 240)
    (tmp_path / "store/out").mkdir()
    whole = tmp_path / "whole"
    pack(tmp_path / "store/in", whole)
    words = ["s3://in", "s3://out", "--shard-bytes", "3000"]
    written: set[str] = set()
    for puts in (7, 10, 15):
        with leat.testing.Bucket(tmp_path / "store", fault_script=f"after {puts} PUT * slow:600s x*") as bucket:
            process = subprocess.Popen(
                [find_binary(), "pack", *words], env={**os.environ, **bucket.env()}, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            while bucket.counters()["put"] <= puts:  # Then it waits for a write.
                assert process.poll() is None
                time.sleep(0.01)
            process.kill()
            process.wait()
        before, written = written, {name for name in files_in(tmp_path / "store/out") if name.endswith(".tar.json")}
        assert before < written, "each call goes on"
    with leat.testing.Bucket(tmp_path / "store") as bucket:
        done = run(*words, env={**os.environ, **bucket.env()})

    assert done.returncode == 0, done.stderr
    shards = {name: data for name, data in files_in(tmp_path / "store/out").items() if name[0] != "."}
    assert shards == {name: data for name, data in files_in(whole).items() if name[0] != "."}


@pytest.mark.parametrize(("words", "says"), [
    (("{pictures}", "out", "--shard-bytes", "much"), "--shard-bytes much; it is a size"),
    (("{pictures}", "out", "--format", "zip"), "invalid choice: 'zip'"),
    (("{pictures}", "out", "--uploads", "0"), "--uploads 0"),
    (("{pictures}",), "the following arguments are required: DEST"),
])  # fmt: skip
def test_wrong_usage_is_one_line(pictures, tmp_path, words, says):
    done = run(*(word.format(pictures=pictures) for word in words), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leat: ") and says in done.stderr and done.stderr.count("\n") == 1


# --- diff --------------------------------------------------------------------


def test_what_differs_between_two_datasets_is_told(tmp_path):
    make_pictures(tmp_path / "a", 12)
    make_pictures(tmp_path / "b", 12)
    (tmp_path / "b/ant/00001.png").unlink()
    write(tmp_path / "b/ant/00099.png", encoded(pixels(99)))
    write(tmp_path / "b/bee/00005.png", encoded(pixels(5, 30, 30)))
    os.rename(tmp_path / "b/cat", tmp_path / "b/dog")

    done = subprocess.run([find_binary(), "diff", str(tmp_path / "a"), str(tmp_path / "b"), "--json"],
                          capture_output=True, text=True, check=False)  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["samples"] == [12, 12]
    assert told["changed"] == ["bee/00005.png"]
    assert told["added"] == ["ant/00099.png", *(f"dog/{number:05}.png" for number in range(8, 12))]
    assert told["removed"] == ["ant/00001.png", *(f"cat/{number:05}.png" for number in range(8, 12))]
    shown = subprocess.run([find_binary(), "diff", str(tmp_path / "a"), str(tmp_path / "b"), "--most", "1"],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert "added    … and 4 more" in shown and "12 samples, then 12: 5 added, 5 removed, 1 changed" in shown


def test_samples_of_one_key_are_counted(tmp_path):
    write(tmp_path / "two/0.tar", tar_of([("k.txt", b"one"), ("l.txt", b"x")]))
    write(tmp_path / "two/1.tar", tar_of([("k.txt", b"four")]))
    write(tmp_path / "one/0.tar", tar_of([("k.txt", b"one"), ("l.txt", b"longer")]))
    two, one = leat.Dataset(tmp_path / "two"), leat.Dataset(tmp_path / "one")

    assert differences(two, one) == {"added": [], "removed": ["k"], "changed": ["l"]}
    assert differences(one, two) == {"added": ["k"], "removed": [], "changed": ["l"]}
    assert differences(two, two) == {"added": [], "removed": [], "changed": []}


def test_fields_of_other_kinds_differ_by_kind(tmp_path):
    for name, value in (("numbers", b"1"), ("texts", b"one")):
        write(tmp_path / f"{name}.csv", b"path,x\n" + b"0.bin," + value + b"\n")
    write(tmp_path / "0.bin", b"x")
    one, other = (leat.Dataset.from_manifest(tmp_path / f"{name}.csv", fields={"data": "path"}, columns=["x"])
                  for name in ("numbers", "texts"))
    with pytest.raises(leat.InvalidArgument, match=r"\(data: bytes, x: int64\).*\(data: bytes, x: string\)"):
        differences(one, other)
