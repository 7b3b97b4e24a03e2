"""Shards of MosaicML Streaming (MDS), read where they lie."""

from __future__ import annotations

import bz2
import decimal
import functools
import gzip
import importlib.util
import json
import logging
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow
import pytest

import leat
from leat._formats._mds import _index as _mds, _shards as _mds_shards, _zip as _mds_zip
from leat.ops import Chain, DecodeImage, LoadMdsArray, ParseFloat, ParseInt, ParseJson, ParseText
from mds_writer import REAL, images_in, settings_of, write_mds
from rank_reads import check_label_and_name, steps_if_read_about_once
from small_datasets import encoded, pixels, write

PEERS = pathlib.Path(sys.prefix) / "peers"
ORACLE = pathlib.Path(sys.prefix) / "oracle"
MIB = 2**20
COLUMNS = {"image": ("png", None), "label": ("int", 8), "row": ("ndarray:uint16:2,3", 12), "text": ("str", None)}


def sample(number: int) -> dict[str, bytes]:
    return {
        "image": encoded(pixels(number)),
        "label": struct.pack("<q", number - 30),
        "row": (np.arange(6) + number).astype("<u2").tobytes(),
        "text": "é".encode() * (number % 4),
    }  # fmt: skip


SAMPLES = [sample(number) for number in range(60)]


@pytest.fixture
def folder(tmp_path, fresh_cache):
    """60 samples in four shards."""
    return write_mds(tmp_path / "mds", COLUMNS, SAMPLES, each=17)


def change_index(folder: pathlib.Path, change) -> pathlib.Path:
    """Has `change` change the entries of the index."""
    index = json.loads((folder / "index.json").read_text())
    change(index["shards"])
    (folder / "index.json").write_text(json.dumps(index))
    return folder


# --- The real writer and reader ---------------------------------------------


CHAINS = {
    name: Chain([op])
    for name, op in {
        "str": ParseText(), "str_int": ParseInt(), "str_float": ParseFloat(), "ndarray": LoadMdsArray(),
        "ndarray:int16": LoadMdsArray(dtype="int16"), "image": DecodeImage(layout="HWC"), "n": ParseJson("n"),
        "text": ParseJson("text"), "list": ParseJson("list"),
    }.items()
}  # fmt: skip


def array(found) -> tuple:
    found = np.asarray(found)
    return ("array", found.dtype.str, found.shape, found.tobytes())


def image(mode: str, found) -> tuple:
    return ("image", mode, *array(found)[1:])


def raw(data: bytes) -> tuple:
    width, height, length = struct.unpack_from("<3I", data)
    mode = data[12 : 12 + length].decode()
    found = np.frombuffer(data, np.uint8, offset=12 + length)
    return image(mode, found.reshape((height, width, 3) if mode == "RGB" else (height, width)))


def picture(data: bytes) -> tuple:
    found = CHAINS["image"](data)
    is_grey = data[:4] == b"\x89PNG" and data[25] == 0  # The PNG's colour type.
    return image("L", found[:, :, 0]) if is_grey else image("RGB", found)


OURS = {
    "bytes": bytes, "pkl": pickle.loads, "int": int, "str": CHAINS["str"], "pil": raw, "png": picture, "jpeg": picture,
    "str_int": lambda data: int(CHAINS["str_int"](data)),
    "str_float": lambda data: float(CHAINS["str_float"](data)),
    "str_decimal": lambda data: decimal.Decimal(data.decode()),
    "ndarray": lambda data: array(CHAINS["ndarray"](data)),
    "ndarray:int16": lambda data: array(CHAINS["ndarray:int16"](data)),
    "jpeg_array": lambda data: [picture(each) for each in images_in(data, 0)],
    "jpegarray": lambda data: [picture(each) for each in images_in(data, 0)],
    "list[jpeg]": lambda data: [picture(each) for each in images_in(data)],
    "list[png]": lambda data: [picture(each) for each in images_in(data)],
    "list[pil]": lambda data: [raw(each) for each in images_in(data)],
    "json": lambda data: {"n": int(CHAINS["n"](data)), "text": CHAINS["text"](data), "list": CHAINS["list"](data).tolist()},
}  # fmt: skip
"""By encoding: a value as Streaming's reader gives it, in builtins; of ours by ops where there is one. All others are
numbers."""


def is_same(one, other) -> bool:
    if isinstance(one, tuple) and one[0] == "image" and one[1] == "RGB":
        # Two builds of libjpeg may round differently.
        first, second = (np.frombuffer(each[-1], np.uint8).astype(int) for each in (one, other))
        return one[:-1] == other[:-1] and int(np.abs(first - second).max()) <= 2
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other or (one != one and other != other)


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A folder that the real writer wrote, its columns, and what the real reader reads."""
    if not (PEERS / "streaming").is_dir() and importlib.util.find_spec("streaming") is None:
        pytest.skip("the real writer of MDS is on PyPI alone, and was not installed: ./dev test gets it, and other tests write the format themselves")
    folder = tmp_path_factory.mktemp("real") / "mds"
    paths = [str(pathlib.Path(__file__).parent), str(PEERS), str(ORACLE), *filter(None, [os.environ.get("PYTHONPATH")])]
    made = subprocess.run(
        [sys.executable, "-c", REAL, str(folder), "1000"], capture_output=True, text=True, check=False, timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    if made.returncode and "ModuleNotFoundError" in made.stderr:
        missing = made.stderr.strip().splitlines()[-1]
        pytest.skip(f"the real writer of MDS was installed without what it imports ({missing}): ./dev test gets both")
    assert made.returncode == 0, made.stderr
    columns, found = pickle.loads((folder.parent / "read.pkl").read_bytes())
    return folder, columns, found


def test_a_thousand_odd_samples_are_read_as_streaming_reads_them(real):
    folder, columns, found = real
    dataset = leat.Dataset.mds(folder, fields=list(columns))
    assert len(dataset) == len(found) == 1000 and len(list(folder.glob("*.mds"))) > 5
    for number, theirs in enumerate(found):
        own = dataset[number]
        for name, encoding in columns.items():
            assert is_same(OURS.get(encoding, array)(own[name]), theirs[name]), (number, name, encoding)


def test_a_loader_gives_the_same_in_batches(real):
    folder, columns, found = real
    names = ["f16", "u64", "row", "a_bytes", "a_str", "s_int"]
    with leat.Loader(
        folder, batch_size=50, shuffle=True, epochs=1, fields=(*names, "index"), output="numpy",
        ops=[ParseText("a_str"), ParseInt("s_int")],
    ) as loader:  # fmt: skip
        for batch in loader:
            halves, wholes, rows, data, texts, numbers, index = batch
            assert halves.dtype == np.float16 and wholes.dtype == np.uint64 and rows.shape == (50, 7)
            for place, number in enumerate(index):
                theirs = found[number]
                for name, value in zip(names[:3], (halves, wholes, rows)):
                    assert value[place].tobytes() == theirs[name][-1], (number, name)
                assert (data[place].tobytes(), texts[place], numbers[place]) == tuple(theirs[name] for name in names[3:])


@pytest.mark.parametrize("kind", ["br", "bz2", "gz", "snappy", "zstd", "zstd-7"])
def test_shards_that_streaming_compressed(real, kind):
    folder = real[0].parent / kind
    dataset = leat.Dataset(folder)
    assert len(list(folder.glob("*.mds.*"))) > 5 and not list(folder.glob("*.mds"))
    assert [(found["n"], found["raw"], found["text"]) for found in dataset] == [
        (number, bytes([number]) * 1000, str(number).encode()) for number in range(100)
    ]


# --- Which fields there are --------------------------------------------------


def test_columns_are_fields(folder):
    dataset = leat.Dataset.mds(folder)
    assert dataset.fields == dict.fromkeys(COLUMNS, "bytes") and len(dataset) == 60
    assert dataset.key(20) == "shard.00001.mds:3"
    for number in range(60):
        found = dataset[number]
        assert found["image"] == SAMPLES[number]["image"] and found["text"] == SAMPLES[number]["text"]
        assert found["label"] == number - 30 and found["label"].dtype == np.int64
        assert found["row"].shape == (2, 3) and found["row"].dtype == np.uint16
        assert found["row"].tobytes() == SAMPLES[number]["row"]


@pytest.mark.parametrize("shuffle", [True, False, "full", "stream"])
def test_batches_of_pictures_and_numbers(folder, shuffle):
    source = leat.Dataset(folder) if shuffle == "stream" else folder
    with leat.Loader(
        source, batch_size=6, shuffle=shuffle, epochs=1, output="numpy", fields=("image", "label", "row", "text", "index"),
        ops=[DecodeImage("image", layout="HWC"), ParseText("text")],
    ) as loader:  # fmt: skip
        seen = []
        for images, labels, rows, texts, index in loader:
            seen += index.tolist()
            assert labels.tolist() == (index - 30).tolist() and labels.dtype == np.int64
            assert rows.shape == (6, 2, 3) and rows[:, 0, 0].tolist() == index.tolist()
            assert texts == ["é" * (number % 4) for number in index]
            for image, number in zip(images, index):
                np.testing.assert_array_equal(image, pixels(int(number)))
    assert sorted(seen) == list(range(60))


def test_numbers_for_torch_and_functions(folder):
    torch = pytest.importorskip("torch")
    with leat.Loader(folder, batch_size=6, shuffle=False, fields=("label", "row"), output="torch") as loader:
        label, row = next(iter(loader))
    assert label.dtype == torch.int64 and label.tolist() == list(range(-30, -24)) and tuple(row.shape) == (6, 2, 3)
    double = leat.ops.Python(lambda data: np.frombuffer(data, "<i8") * 2, field="label")
    with leat.Loader(folder, batch_size=6, shuffle=False, fields=("label",), ops=[double], output="numpy") as loader:
        assert next(iter(loader))[0].tolist() == [[2 * number] for number in range(-30, -24)]
    some = leat.ops.Python(lambda data: np.ones(data[0] % 3, np.float32), field="label", ragged=True)
    with leat.Loader(folder, batch_size=6, shuffle=False, fields=("label",), ops=[some], output="numpy") as loader:
        assert [each.tolist() for each in next(iter(loader))[0]] == [[1.0] * ((number % 256) % 3) for number in range(-30, -24)]


def test_every_way_to_name_a_folder(folder):
    for made in (
        leat.Dataset(folder), leat.Dataset(f"{folder}/"), leat.Dataset.mds(folder), leat.Dataset.mds(f"{folder}/"),
        leat.Dataset.mds(folder / "index.json"), leat.Dataset.mds(folder.as_uri()),
    ):  # fmt: skip
        assert len(made) == 60 and made[3]["text"] == SAMPLES[3]["text"]
    whole = leat.Dataset(folder, extensions="mds")
    assert len(whole) == 4 and whole[0]["data"] == (folder / "shard.00000.mds").read_bytes()


def test_numbers_are_parsed_for_filters(folder):
    dataset = leat.Dataset(folder)
    assert dataset.parsed("label", int).tolist() == list(range(-30, 30))
    assert len(dataset.filter(lambda of: of.parsed("label", int) >= 20)) == 10
    with pytest.raises(leat.InvalidArgument, match=r"sample 0 \(shard.00000.mds:0\) has -30"):
        dataset.parsed("label", lambda number: number.nothing)


def test_only_fields_that_are_asked_for(folder):
    assert list(leat.Dataset.mds(folder, fields=["text", "label"]).fields) == ["text", "label"]
    with leat.Loader(folder, batch_size=6, shuffle=True, fields=("label",)) as loader:
        assert list(loader.dataset.fields) == ["label"]
    with pytest.raises(leat.InvalidArgument, match=r"no column 'lable'; it has image \(png\), label"):
        leat.Dataset.mds(folder, fields=["lable"])
    for wrong, what in (("label", "it is a list"), ([], "names no column")):
        with pytest.raises(leat.InvalidArgument, match=what):
            leat.Dataset.mds(folder, fields=wrong)


def test_pickled_columns_are_not_unpickled(tmp_path, fresh_cache):
    bomb = b"cos\nsystem\n(S'touch unpickled'\ntR."
    folder = write_mds(tmp_path / "mds", {"label": ("int", 8), "meta": ("pkl", None)}, [{"label": bytes(8), "meta": bomb}])
    with pytest.raises(leat.InvalidArgument, match=r"column 'meta' is pickled.*fields=\('label',\).*ops\.Python"):
        leat.Dataset(folder)
    assert leat.Dataset.mds(folder, fields=["label"])[0] == {"label": 0}
    assert leat.Dataset.mds(folder, fields=["meta"])[0] == {"meta": bomb}
    with leat.Loader(folder, batch_size=1, shuffle=False, fields=("label",), output="numpy") as loader:
        assert next(iter(loader))[0].tolist() == [0]


def test_encodings_of_others_are_bytes(tmp_path, fresh_cache):
    columns = {"a": ("their_own", None), "b": ("their_fixed", 3)}
    folder = write_mds(tmp_path / "mds", columns, [{"a": b"one", "b": b"abc"}, {"a": b"", "b": b"def"}])
    assert list(leat.Dataset(folder)) == [{"a": b"one", "b": b"abc"}, {"a": b"", "b": b"def"}]


# --- Places ------------------------------------------------------------------


def test_an_index_that_was_merged(tmp_path, fresh_cache):
    write_mds(tmp_path / "all" / "0", COLUMNS, SAMPLES[:20], each=7)
    write_mds(tmp_path / "all" / "1", COLUMNS, SAMPLES[20:])
    shards = []
    for part in "01":
        for entry in json.loads((tmp_path / "all" / part / "index.json").read_text())["shards"]:
            entry["raw_data"]["basename"] = f"{part}/{entry['raw_data']['basename']}"
            shards.append(entry)
    with pytest.raises(leat.InvalidArgument, match=r"leat\.Dataset\.mds\('.*all/0'\).*concat"):
        leat.Dataset(tmp_path / "all")
    write(tmp_path / "all" / "index.json", json.dumps({"version": 2, "shards": shards}).encode())
    dataset = leat.Dataset.mds(tmp_path / "all")
    assert [found["label"] for found in dataset] == [number - 30 for number in range(60)]


def test_a_web_server_that_cannot_list(folder, serve):
    served = serve(folder)
    dataset = leat.Dataset.mds(served.http_url)
    assert [found["label"] for found in dataset] == [number - 30 for number in range(60)]


def test_what_is_no_whole_folder_is_refused(folder, tmp_path):
    for given in ({"include": "*0.mds"}, {"exclude": "*0.mds"}):
        with pytest.raises(leat.InvalidArgument, match="index.json"):
            leat.Dataset(folder, **given)
    with pytest.raises(leat.InvalidArgument, match="without their index.json"):
        leat.Dataset(f"{folder}/*.mds")
    with pytest.raises(leat.InvalidArgument, match="shards of MDS.*concat"):
        leat.Dataset([folder, write_mds(tmp_path / "more", COLUMNS, SAMPLES)])
    with pytest.raises(leat.InvalidArgument, match=r'shuffle="stream" give them as leat\.Dataset\.mds'):
        leat.Loader(folder, batch_size=1, shuffle="stream")
    with pytest.raises(leat.NotFound, match="index.json.*MDSWriter"):
        leat.Dataset.mds(tmp_path)


def test_parts_joined_and_pickled(folder, tmp_path):
    dataset = leat.Dataset(folder)
    more = leat.Dataset(write_mds(tmp_path / "more", COLUMNS, SAMPLES[:5]))
    both = leat.Dataset.concat([dataset.select([59, 3]), more])
    assert [found["label"] for found in both] == [29, -27, -30, -29, -28, -27, -26]
    again = pickle.loads(pickle.dumps(both))
    assert again[1]["row"].tolist() == both[1]["row"].tolist()
    other = write_mds(tmp_path / "other", {**COLUMNS, "row": ("ndarray:uint16:3,2", 12)}, SAMPLES)
    with pytest.raises(leat.InvalidArgument, match="dtypes or shapes"):
        leat.Dataset.concat([dataset, leat.Dataset(other)])
    pickled = pickle.dumps(dataset)
    write_mds(folder, COLUMNS, SAMPLES[:40], each=17)
    with pytest.raises(leat.InvalidArgument, match="other data"):
        pickle.loads(pickled)


# --- What is read ------------------------------------------------------------


def test_heads_alone_are_read_if_one_column_has_no_fixed_size(tmp_path, fresh_cache, serve):
    columns = {"label": ("int", 8), "raw": ("bytes", None)}
    rng = np.random.default_rng(3)
    samples = [{"label": struct.pack("<q", number), "raw": rng.bytes(30_000 + number)} for number in range(100)]
    served = serve(write_mds(tmp_path / "bucket", columns, samples, each=25))
    dataset = leat.Dataset.mds(served.url, **served.options)
    counters = served.counters()
    assert counters["get"] <= 1 + 4 + 1 and counters["bytes"] < 150_000, counters
    served.reset()
    leat.Dataset.mds(served.url, **served.options)
    assert served.counters()["get"] <= 2  # The index, and whether the shards may be read.
    for number in (0, 24, 25, 99):
        assert dataset[number] == {"label": number, "raw": samples[number]["raw"]}


def test_of_several_the_heads_of_samples_are_read_once(tmp_path, fresh_cache, serve, caplog):
    columns = {"a": ("bytes", None), "b": ("bytes", None)}
    rng = np.random.default_rng(3)
    samples = [{"a": rng.bytes(2 * MIB + number), "b": rng.bytes(number)} for number in range(8)]
    served = serve(write_mds(tmp_path / "bucket", columns, samples, each=4))
    dataset = leat.Dataset.mds(served.url, **served.options)
    counters = served.counters()
    assert counters["get"] <= 1 + 2 + 8 + 1 and counters["bytes"] < 100_000, counters
    assert [dataset[number]["b"] for number in range(8)] == [each["b"] for each in samples]


@pytest.mark.parametrize("window, gap", [(1, 1), (100, 1), (100, 10**6), (10**6, 700), (10**6, 10**6)])
def test_windows_of_any_size_find_the_same(folder, monkeypatch, window, gap):
    monkeypatch.setattr(_mds_shards, "_WINDOW_BYTES", window)
    monkeypatch.setattr(_mds_shards, "_GAP_BYTES", gap)
    dataset = leat.Dataset.mds(folder, refresh="always")
    assert [found["text"] for found in dataset] == [each["text"] for each in SAMPLES]
    assert [found["label"] for found in dataset] == [number - 30 for number in range(60)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """12 shards of 17 MB: 24 pieces of 8 MiB."""
    rng = np.random.default_rng(4)
    columns = {"data": ("bytes", None), "label": ("int", 8), "name": ("str", None)}
    samples = [
        {"data": rng.bytes(180_000), "label": struct.pack("<q", number), "name": f"{number}".encode()}
        for number in range(12 * 96)
    ]
    return write_mds(tmp_path_factory.mktemp("large") / "mds", columns, samples, each=96)


def test_any_number_of_ranks_reads_each_piece_about_once(large, serve):
    served = serve(large)
    dataset = leat.Dataset(served.url, **served.options)
    size = sum(path.stat().st_size for path in large.glob("*.mds"))
    assert steps_if_read_about_once(dataset, served, size, check_label_and_name) == 24


def test_a_shard_that_was_changed_is_noticed(folder, serve):
    served = serve(folder)
    dataset = leat.Dataset.mds(served.url, **served.options)
    path = folder / "shard.00001.mds"
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(leat.Corrupt, match=r"shard\.00001\.mds"):
        list(dataset)


# --- Damage ------------------------------------------------------------------


def test_a_shard_that_is_cut_short(folder):
    path = folder / "shard.00001.mds"
    whole = path.read_bytes()
    for size in {*range(0, 100), *range(100, len(whole), 501)}:
        path.write_bytes(whole[:size])
        with pytest.raises(leat.Corrupt, match=rf"shard\.00001\.mds .*{size} bytes, and index\.json says {len(whole)}"):
            leat.Dataset.mds(folder, refresh="always")
    path.unlink()
    with pytest.raises(leat.NotFound, match=r"shard\.00001\.mds"):
        leat.Dataset.mds(folder, refresh="always")


def test_a_shard_that_is_cut_short_with_its_index(folder):
    path = folder / "shard.00001.mds"
    whole = path.read_bytes()
    for size in {*range(0, 100), *range(100, len(whole), 501)}:
        path.write_bytes(whole[:size])
        change_index(folder, lambda shards, size=size: shards[1]["raw_data"].update(bytes=size))
        with pytest.raises(leat.Corrupt, match=r"shard\.00001\.mds is no shard of MDS, or it is damaged"):
            leat.Dataset.mds(folder, refresh="always")


def test_any_byte_of_a_head_may_be_wrong(tmp_path, fresh_cache):
    folder = write_mds(tmp_path / "mds", COLUMNS, SAMPLES[:9])
    path = folder / "shard.00000.mds"
    whole = path.read_bytes()
    table = 4 * (9 + 2)
    begins = struct.unpack_from("<10I", whole, 4)
    heads = [place for begin in begins[:-1] for place in range(begin, begin + 8)]
    for place in [*range(0, begins[0], 3), *heads[::2]]:
        for bit in (0x01,) if table <= place < begins[0] else (0x80 if place % 4 < 2 else 0x01,):
            spoilt = bytearray(whole)
            spoilt[place] ^= bit
            path.write_bytes(spoilt)
            try:
                found = [each["label"] for each in leat.Dataset.mds(folder, refresh="always")]
            except leat.Corrupt as error:
                assert "shard.00000.mds" in str(error)
            else:  # Settings of the writer's that say nothing of columns.
                assert table <= place < begins[0] and found == list(range(-30, -21)), place


@pytest.mark.parametrize("own", [0, 1])
def test_offsets_that_leave_no_room(tmp_path, fresh_cache, own):
    columns = {"label": ("int", 8), **({"raw": ("bytes", None)} if own else {})}
    samples = [{"label": struct.pack("<q", number), **({"raw": b"abc"} if own else {})} for number in range(9)]
    folder = write_mds(tmp_path / "mds", columns, samples)
    path = folder / "shard.00000.mds"
    whole = path.read_bytes()
    for number in range(1, 9):
        before, here = struct.unpack_from("<2I", whole, 4 * number)
        for place in (before + 1, before + 11 if own else here + 1, here + 9):
            spoilt = bytearray(whole)
            struct.pack_into("<I", spoilt, 4 * (number + 1), place)
            path.write_bytes(spoilt)
            with pytest.raises(leat.Corrupt, match=r"shard\.00000\.mds is no shard of MDS"):
                leat.Dataset.mds(folder, refresh="always")


def test_any_byte_of_an_index_may_be_wrong(tmp_path, fresh_cache):
    folder = write_mds(tmp_path / "mds", COLUMNS, SAMPLES[:9], each=5)
    whole = (folder / "index.json").read_bytes()
    caught = set()
    for place in range(0, len(whole), 3):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x11
        (folder / "index.json").write_bytes(spoilt)
        try:
            assert [each["text"] for each in leat.Dataset.mds(folder)] == [each["text"] for each in SAMPLES[:9]]
        except leat.Error as error:
            assert type(error) in (leat.Corrupt, leat.InvalidArgument, leat.NotFound), error
            caught.add(type(error))
    assert leat.Corrupt in caught
    for size in range(0, len(whole), 23):
        (folder / "index.json").write_bytes(whole[:size])
        with pytest.raises(leat.Corrupt, match=r"index\.json is no index of MDS shards, or it is damaged"):
            leat.Dataset.mds(folder)


@pytest.mark.parametrize(
    "name",
    ["../secret.mds", "/etc/passwd", "a/../../b.mds", "a//b.mds", "./x.mds", "..", "", "x\u0000.mds", "s3://other/x.mds",
     "a\\..\\b.mds", "x.mds#leat:made;1", "\ud800.mds", 7, None],
    ids=ascii,
)  # fmt: skip
def test_names_that_lead_elsewhere_are_corrupt(folder, name):
    change_index(folder, lambda shards: shards[2]["raw_data"].update(basename=name))
    with pytest.raises(leat.Corrupt, match=r"index\.json.*shard 2: .*name"):
        leat.Dataset.mds(folder)


def lie(**entry):
    return lambda shards: shards[1].update(entry)


@pytest.mark.parametrize(
    "change, says",
    [
        (lie(samples=16), r"shard\.00001\.mds .*it says 17 samples, and index.json 16"),
        (lie(samples=18), "it says 17 samples"),
        (lie(samples=2**31), r"bytes are too few for 2147483648 samples"),
        (lie(samples=-1), "-1 samples"),
        (lie(samples=1.5), "1.5 samples"),
        (lie(samples=True), "True samples"),
        (lie(samples=2**32), "4294967296 samples"),
        (lie(samples=None), "None samples"),
        (lambda shards: shards[1]["raw_data"].update(bytes=10**9), "index.json says 1000000000"),
        (lambda shards: shards[1].update(raw_data=shards[0]["raw_data"]), "names shard.00000.mds twice"),
        (lambda shards: shards[1].update(raw_data=None), "no raw_data"),
        (lambda shards: shards.insert(1, 7), "shard 1: it is no object"),
        (lie(column_names=["image"]), "no lists of one length"),
        (lie(column_names=["image", "label", "label", "text"]), "two columns have one name"),
        (lie(column_names=["image", 5, "row", "text"]), "a column's name is 5"),
        (lie(column_sizes=[None, 4, 12, None]), "column 'label', int, has 8 bytes, and not 4"),
        (lie(column_sizes=[None, None, 12, None]), "has 8 bytes, and not None"),
        (lie(column_sizes=[None, 8, -12, None]), "-12 bytes of column 'row'"),
        (lie(column_encodings=["png", "int", "ndarray:int:2,3", "str"]), "'ndarray:int:2,3' is none"),
        (lie(column_encodings=["png", "int", "ndarray:uint16:2,0", "str"]), "'ndarray:uint16:2,0' is none"),
        (lie(column_encodings=["png", "int", "ndarray:uint16:2,x", "str"]), "is none"),
        (lie(version=1), "version 1"),
    ],
)  # fmt: skip
def test_an_index_that_lies_is_corrupt(folder, change, says):
    change_index(folder, change)
    with pytest.raises(leat.Corrupt, match=says):
        leat.Dataset.mds(folder)


def test_columns_that_the_shards_do_not_have(folder):
    def rename(shards):
        for entry in shards:
            entry["column_names"] = ["image", "label", "row", "texts"]

    change_index(folder, rename)
    with pytest.raises(leat.Corrupt, match=r"its columns are image \(png\).*text \(str\), and index.json says .*texts"):
        leat.Dataset.mds(folder)
    change_index(folder, lambda shards: shards[0].update(column_names=["image", "label", "row", "words"]))
    with pytest.raises(leat.InvalidArgument, match="has other columns than shard.00000.mds"):
        leat.Dataset.mds(folder)


# --- Compressed shards -------------------------------------------------------


def compressed(folder: pathlib.Path, kind: str, change=lambda data: data) -> pathlib.Path:
    """Compresses the shards of a folder, as `MDSWriter(compression=kind)` does."""
    family = kind.partition(":")[0]

    def compress(data: bytes) -> bytes:
        if family in ("gz", "bz2"):
            return (gzip if family == "gz" else bz2).compress(data)
        return pyarrow.Codec("brotli" if family == "br" else family).compress(data, asbytes=True)

    def compress_all(shards):
        for entry in shards:
            path = folder / entry["raw_data"]["basename"]
            data = change(compress(path.read_bytes()))
            write(folder / f"{path.name}.{family}", data)
            path.unlink()
            zipped = {"basename": f"{path.name}.{family}", "bytes": len(data), "hashes": {}}
            entry.update(compression=kind, zip_data=zipped)

    return change_index(folder, compress_all)


KINDS = ["br", "bz2", "gz:3", "snappy", "zstd"]


@pytest.mark.parametrize("kind", KINDS)
def test_compressed_shards_are_read(folder, kind):
    dataset = leat.Dataset(compressed(folder, kind))
    for number in range(60):
        found = dataset[number]
        assert found["image"] == SAMPLES[number]["image"] and found["label"] == number - 30
    again = pickle.loads(pickle.dumps(dataset))
    for shuffle in (True, False):
        with leat.Loader(
            again, batch_size=6, shuffle=shuffle, epochs=1, fields=("label", "text", "index"), output="numpy",
            ops=[ParseText("text")],
        ) as loader:  # fmt: skip
            seen = []
            for label, text, index in loader:
                seen += index.tolist()
                assert label.tolist() == (index - 30).tolist() and text == ["é" * (number % 4) for number in index]
        assert sorted(seen) == list(range(60))


def test_an_epoch_reads_a_compressed_shard_once(tmp_path, fresh_cache, serve):
    rng = np.random.default_rng(3)
    columns = {"label": ("int", 8), "raw": ("bytes", None)}
    samples = [{"label": struct.pack("<q", number), "raw": rng.bytes(3000)} for number in range(240)]
    served = serve(compressed(write_mds(tmp_path / "bucket", columns, samples, each=20), "gz"))
    dataset = leat.Dataset.mds(served.url, **served.options)
    served.reset()
    leat.Dataset.mds(served.url, **served.options)
    assert served.counters()["get"] <= 2
    found = []
    for world in (1, 2):
        served.reset()
        seen, hashes = [], 0
        for rank in range(world):
            with leat.Loader(
                dataset, global_batch_size=16, shuffle=True, epochs=1, fields=("label", "raw", "index"), output="numpy",
                rank=rank, world_size=world,
            ) as loader:  # fmt: skip
                for label, _, index in loader:
                    assert label.tolist() == index.tolist()
                    seen += index.tolist()
                hashes += int(loader.stats()[-1]["content_hash"], 16)
        found.append((sorted(seen), hashes % 2**128))
        assert served.counters()["get"] <= 12 * world, world
    assert found[0] == found[1] and found[0][0] == list(range(240))
    path = tmp_path / "bucket" / "shard.00003.mds.gz"
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(leat.Corrupt, match=r"shard\.00003\.mds\.gz"):
        list(leat.Dataset.mds(served.url, **served.options))


@pytest.mark.parametrize("kind", KINDS)
def test_compressed_shards_that_are_damaged(folder, kind):
    compressed(folder, kind)
    path = next(folder.glob("shard.00001.mds.*"))
    whole, index = path.read_bytes(), (folder / "index.json").read_text()

    def opened(data: bytes):
        path.write_bytes(data)
        (folder / "index.json").write_text(index)
        change_index(folder, lambda shards: shards[1]["zip_data"].update(bytes=len(data)))
        return [found["text"] for found in leat.Dataset.mds(folder, refresh="always")]

    for size in {0, 1, 2, 9, len(whole) // 2, len(whole) - 5, len(whole) - 1}:
        with pytest.raises(leat.Corrupt, match=r"shard\.00001\.mds"):
            opened(whole[:size])
    rng = np.random.default_rng(1)
    for _ in range(15):
        spoilt = bytearray(whole)
        spoilt[rng.integers(len(spoilt))] ^= 1 << rng.integers(8)
        try:  # Not all of these have checksums, and what is not the head may be anything.
            opened(bytes(spoilt))
        except leat.Corrupt as error:
            assert "shard.00001.mds" in str(error)
    path.write_bytes(whole[:-1])
    (folder / "index.json").write_text(index)
    with pytest.raises(leat.Corrupt, match=f"{len(whole) - 1} bytes, and index.json says {len(whole)}"):
        leat.Dataset.mds(folder, refresh="always")


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_is_made_than_the_index_says(kind):
    family = kind.partition(":")[0]
    zeros = bytes(50 * MIB)
    small = {"gz": gzip.compress, "bz2": bz2.compress}.get(family) or functools.partial(
        pyarrow.Codec("brotli" if family == "br" else family).compress, asbytes=True
    )
    data = small(zeros)
    assert _mds_zip.decompress(family, data, len(zeros)) == zeros
    tracemalloc.start()
    with pytest.raises(leat.Corrupt):
        _mds_zip.decompress(family, data, 1000)
    assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    tracemalloc.stop()
    with pytest.raises(leat.Corrupt):
        _mds_zip.decompress(family, data, len(zeros) + 1)


def test_compressed_shards_that_cannot_be_read(folder, monkeypatch):
    compressed(folder, "zstd")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(leat.InvalidArgument, match="zstd need pyarrow.*pip install pyarrow"):
            leat.Dataset(folder)
    with monkeypatch.context() as patch:
        patch.setattr(_mds, "_MOST_ZIPPED_BYTES", 1000)
        with pytest.raises(leat.InvalidArgument, match="shard.00000.mds.*smaller size_limit="):
            leat.Dataset(folder)
    change_index(folder, lambda shards: shards[0].update(compression="lzma"))
    with pytest.raises(leat.InvalidArgument, match="'lzma', and Leat reads br, bz2, gz, snappy, zstd"):
        leat.Dataset.mds(folder)
    change_index(folder, lambda shards: shards[0].update(compression=None))
    with pytest.raises(leat.Corrupt, match="shard 0: its compression is None"):
        leat.Dataset.mds(folder)
    change_index(folder, lambda shards: shards[0].update(compression="zstd", zip_data=shards[1]["zip_data"]))
    with pytest.raises(leat.Corrupt, match="twice"):
        leat.Dataset.mds(folder)


def test_other_formats_and_nothing(folder):
    change_index(folder, lambda shards: shards.clear())
    with pytest.raises(leat.InvalidArgument, match="names no samples"):
        leat.Dataset.mds(folder)
    write(folder / "index.json", json.dumps({"version": 2, "shards": [settings_of(COLUMNS, format="csv")]}).encode())
    with pytest.raises(leat.InvalidArgument, match="'csv'.*from_manifest"):
        leat.Dataset.mds(folder)
    for wrong in (b"[]", b"{}", b'{"version": 2, "shards": 7}', b'{"version": 3, "shards": []}', b"[" * 100_000, b"\xff"):
        write(folder / "index.json", wrong)
        with pytest.raises(leat.Corrupt, match="no index of MDS shards"):
            leat.Dataset.mds(folder)


def test_reading_through_is_said_once(folder, monkeypatch, caplog):
    monkeypatch.setattr(_mds_shards, "_TOLD_BYTES", 1000)
    with caplog.at_level(logging.INFO, logger="leat"):
        leat.Dataset.mds(folder)
        leat.Dataset.mds(folder)
    assert caplog.text.count("to learn where each value lies") == 1


# --- Arrays of any shape -----------------------------------------------------


def array_of(array: np.ndarray, code: int | None = None, width: int = 0) -> bytes:
    head = b"" if code is None else bytes([code])
    sides = np.array(array.shape, f"<u{2**width}").tobytes()
    return head + bytes([array.ndim << 2 | width]) + sides + array.tobytes()


def test_arrays_of_any_shape(tmp_path, fresh_cache):
    tokens = [np.arange(number + 1, dtype=np.int32) for number in range(20)]
    columns = {"tokens": ("ndarray:int32", None)}
    folder = write_mds(tmp_path / "mds", columns, [{"tokens": array_of(each)} for each in tokens])
    options = {"batch_size": 5, "shuffle": False, "epochs": 1, "fields": ("tokens",), "output": "numpy"}
    with leat.Loader(folder, ops=[LoadMdsArray("tokens", dtype="int32", ragged=True)], **options) as loader:
        found = [each for (batch,) in loader for each in batch]
    assert [each.tolist() for each in found] == [each.tolist() for each in tokens] and found[0].dtype == np.int32
    with pytest.raises(leat.InvalidArgument, match=r"leat\.ops\.LoadMdsArray\(ragged=True\)"):
        with leat.Loader(folder, ops=[LoadMdsArray("tokens", dtype="int32")], **options) as loader:
            list(loader)


@pytest.mark.parametrize("code, dtype", [(8, "uint8"), (17, "int16"), (18, "float16"), (34, "float32"), (66, "float64")])
@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_arrays_that_say_their_type(code, dtype, width):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    found = Chain([LoadMdsArray()])(array_of(array, code, width))
    assert found.dtype == dtype and found.tolist() == array.tolist()
    named = Chain([LoadMdsArray(dtype=dtype)])(array_of(array, None, width))
    assert named.dtype == dtype and named.tolist() == array.tolist()


def test_arrays_that_are_damaged_are_corrupt():
    whole = array_of(np.arange(6, dtype=np.int16).reshape(2, 3), 17)
    for size in range(len(whole)):
        with pytest.raises(leat.Corrupt, match="MDS array"):
            Chain([LoadMdsArray()])(whole[:size])
    for place in range(4):
        for bit in (0x02, 0x80):
            spoilt = bytearray(whole)
            spoilt[place] ^= bit
            with pytest.raises(leat.Corrupt, match="MDS array"):
                Chain([LoadMdsArray()])(bytes(spoilt))
    with pytest.raises(leat.InvalidArgument, match="dtype='bool' must be one of"):
        LoadMdsArray(dtype=bool)


def test_an_index_is_read_in_a_moment_whatever_it_claims():
    entry = settings_of(COLUMNS, raw_data={"basename": "x.mds", "bytes": 100, "hashes": {}}, samples=2**32 - 1)
    index = _mds.parse(json.dumps({"version": 2, "shards": [entry]}).encode(), "index.json")
    with pytest.raises(leat.Corrupt, match="too few"):
        _mds_shards.scan_shard(index.shards[0], 100, index.columns, index.columns, lambda at, length: bytes(length))
