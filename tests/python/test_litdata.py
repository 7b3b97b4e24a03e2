"""LitData's optimised chunks, read where they lie."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

import leat
from leat._formats._litdata import _index as _litdata, _chunks as _litdata_chunks, _packed as _litdata_packed
from leat.ops import Chain, DecodeImage, LoadLitdataArray, ParseText
from litdata_writer import REAL, change_index, chunk_of, write_arrow, write_index, write_litdata
from mds_writer import images_in
from rank_reads import check_label_and_name, steps_if_read_about_once
from small_datasets import encoded, pixels, write

PEERS = pathlib.Path(sys.prefix) / "peers"
ORACLE = pathlib.Path(sys.prefix) / "oracle"
SHAPE = {"image": "image:png", "label": "int", "row": "no_header_numpy:5", "meta": ("str", "bool")}


def sample(number: int) -> tuple[bytes, ...]:
    return (encoded(pixels(number)), struct.pack("<q", number - 30), np.arange(number % 4, dtype="<u2").tobytes(),
            "é".encode() * (number % 4), bytes([number % 2]))  # fmt: skip


SAMPLES = [sample(number) for number in range(60)]


@pytest.fixture
def folder(tmp_path, fresh_cache):
    """60 samples in four chunks."""
    return write_litdata(tmp_path / "chunks", SHAPE, SAMPLES, each=17)


# --- The real writer and reader ---------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A folder of datasets that the real writer wrote, and what the real reader reads of each."""
    if not (PEERS / "litdata").is_dir() and importlib.util.find_spec("litdata") is None:
        pytest.skip("the real writer of chunks is on PyPI alone, and was not installed: ./dev test gets it, and other tests write the format themselves")
    folder = tmp_path_factory.mktemp("real")
    paths = [str(pathlib.Path(__file__).parent), str(PEERS), str(ORACLE), *filter(None, [os.environ.get("PYTHONPATH")])]
    (folder / "write.py").write_text(REAL)
    made = subprocess.run(
        [sys.executable, str(folder / "write.py"), str(folder), "1000"], capture_output=True, text=True, check=False,
        timeout=280, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "HOME": str(folder),
             "DATA_OPTIMIZER_CACHE_FOLDER": str(folder / "cache"), "LITDATA_CACHE_DIR": str(folder / "read")},
    )  # fmt: skip
    if made.returncode and "ModuleNotFoundError" in made.stderr:
        missing = made.stderr.strip().splitlines()[-1]
        pytest.skip(f"the real writer of chunks was installed without what it imports ({missing}): ./dev test gets both")
    assert made.returncode == 0, made.stderr
    return folder, pickle.loads((folder / "read.pkl").read_bytes())


@functools.lru_cache(maxsize=None)
def chain(op: type) -> Chain:
    return Chain([op()])


def array(found) -> tuple:
    found = np.asarray(found)
    return ("array", found.dtype.str, found.shape, found.tobytes())


def of_pil(data: bytes) -> tuple:
    width, height, length = struct.unpack_from("<3I", data)
    assert data[12 : 12 + length] == b"RGB"
    return array(np.frombuffer(data, np.uint8, offset=15).reshape(height, width, 3))


def of_texts(data: bytes) -> list[str]:
    """LitData's compact form of a list of texts."""
    count, at, found = int.from_bytes(data[1:5], "little"), 5, []
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "little")
        found.append(data[at + 4 : at + 4 + length].decode())
        at += 4 + length
    assert data[0] == 1 and at == len(data)
    return found


def of_image(data: bytes) -> tuple:
    return ("image", *array(chain(DecodeImage)(data))[1:])


OURS = {
    "text": lambda data: chain(ParseText)(data), "whole": int, "real": float, "flag": bool, "raw": bytes, "pil": of_pil, "meta.file": bytes,
    "array": lambda data: array(chain(LoadLitdataArray)(data)), "tensors.1": lambda data: array(chain(LoadLitdataArray)(data)),
    "tensors.2": lambda data: array(chain(LoadLitdataArray)(data)), "pictures.0": of_image, "pictures.1": of_image,
    "jpegs": lambda data: [of_image(each) for each in images_in(data, 0)], "meta.id": int, "meta.tags": of_texts,
    "pickled": pickle.loads,
}  # fmt: skip
"""By field: a value as LitData's reader gives it; of ours by ops where there is one. All others are rows."""


def flat(value, name: str = "") -> dict:
    """By our names of fields."""
    is_tree = isinstance(value, dict) or (isinstance(value, list) and name in ("tensors", "pictures"))
    if not is_tree:
        return {name: value}
    each = value.items() if isinstance(value, dict) else enumerate(value)
    return {key: leaf for place, inner in each for key, leaf in flat(inner, f"{name}.{place}".lstrip(".")).items()}


def is_same(one, other) -> bool:
    if isinstance(one, tuple) and one[0] == "image":
        # Two builds of libjpeg may round differently.
        first, second = (np.frombuffer(each[-1], np.uint8).astype(int) for each in (one, other))
        return one[1:-1] == other[1:-1] and int(np.abs(first - second).max()) <= 2
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other or (one != one and other != other)


def test_a_thousand_odd_samples_are_read_as_litdata_reads_them(real):
    folder, found = real[0] / "odd", real[1]["odd"]
    with pytest.raises(leat.InvalidArgument, match="'pickled' is pickled"):
        leat.Dataset(folder)
    names = list(flat(found[0]))
    dataset = leat.Dataset.litdata(folder, fields=names)
    assert len(dataset) == len(found) == 1000 and len(list(folder.glob("*.bin"))) > 5
    for number, theirs in enumerate(map(flat, found)):
        own = dataset[number]
        assert set(own) == set(theirs)
        for name, value in theirs.items():
            assert is_same(OURS.get(name, array)(own[name]), value), (number, name)


def test_a_loader_gives_the_same_in_batches(real):
    folder, found = real[0] / "odd", real[1]["odd"]
    names = ["whole", "real", "flag", "row", "tensors.0", "raw", "text", "meta.id"]
    with leat.Loader(
        folder, batch_size=50, shuffle=True, epochs=1, fields=(*names, "index"), output="numpy", ops=[ParseText("text")],
    ) as loader:  # fmt: skip
        for batch in loader:
            wholes, reals, flags, rows, tensors, data, texts, ids, index = batch
            assert (wholes.dtype, reals.dtype, flags.dtype) == (np.int64, np.float64, np.bool_)
            assert rows.values.dtype == np.uint16 and tensors.values.dtype == np.int32
            for place, number in enumerate(index):
                theirs = flat(found[number])
                assert wholes[place] == theirs["whole"] and flags[place] == theirs["flag"] and ids[place] == number
                assert reals[place] == theirs["real"] or theirs["real"] != theirs["real"]
                assert array(rows[place]) == theirs["row"] and array(tensors[place]) == theirs["tensors.0"]
                assert (data[place].tobytes(), texts[place]) == (theirs["raw"], theirs["text"])


@pytest.mark.parametrize("name", ["plain", "plain-zstd"])
def test_arrow_tables_are_read_as_litdata_reads_them(real, name):
    folder, found = real[0] / name, real[1][name]
    assert any(path.read_bytes().endswith(_litdata_packed.FOOTER) for path in folder.glob("*.bin"))
    dataset = leat.Dataset(folder)
    assert len(dataset) == len(found) == 1000 and len(list(folder.glob("*.bin"))) > 1
    for own, theirs in zip(dataset, found):
        assert own["raw"] == theirs["raw"] and own["text"].decode() == theirs["text"] and own["real"] == theirs["real"]
        assert (own["n"], own["flag"], own["meta.id"]) == (theirs["n"], theirs["flag"], theirs["meta"]["id"])
        assert json.loads(own["meta.tags"]) == theirs["meta"]["tags"]


def test_tuples(real):
    dataset = leat.Dataset(real[0] / "pair")
    assert dataset.fields == {"0": "bytes", "1": "bytes"}
    assert [[own["0"], own["1"]] for own in dataset] == real[1]["pair"]


@pytest.mark.parametrize("name", ["filed", "filed-chunk", "filed-batch", "filed-sample"])
def test_every_level_of_compression(real, name):
    folder, found = real[0] / name, real[1][name]
    config = json.loads((folder / "index.json").read_text())["config"]
    assert (config["compression"] is None) == (name == "filed")
    dataset = leat.Dataset(folder)
    assert list(dataset) == found and len(found) == 1000
    with leat.Loader(dataset, batch_size=50, shuffle=True, epochs=1, output="numpy", fields=("raw", "n")) as loader:
        for data, numbers in loader:
            assert [each.tobytes() for each in data] == [found[number]["raw"] for number in numbers]


def test_a_sample_that_is_one_value(real):
    dataset = leat.Dataset(real[0] / "root")
    assert [array(own["data"]) for own in dataset] == real[1]["root"]


@pytest.mark.parametrize("name", ["tokens", "tokens-zstd"])
def test_windows_of_tokens_are_those_of_litdata(real, name):
    folder, found = real[0] / name, real[1][name]
    dataset = leat.Dataset.litdata(folder, block_size=65)
    assert [array(own["tokens"]) for own in dataset] == found and len(found) > 100
    with leat.Loader(dataset, batch_size=10, shuffle=True, epochs=1, output="numpy", fields=("tokens", "index")) as loader:
        for windows, index in loader:
            assert windows.shape == (10, 65) and [array(each) for each in windows] == [found[number] for number in index]
    documents = leat.Dataset(folder)
    assert len(documents) == 199
    assert documents[7]["tokens"].tolist() == list(range(800, 800 + 37 + 8)) and documents[7]["tokens"].dtype == np.int32
    with pytest.raises(leat.InvalidArgument, match="no chunk has 2000000 tokens"):
        leat.Dataset.litdata(folder, block_size=2_000_000)


# --- Which fields there are --------------------------------------------------


def test_values_are_fields(folder):
    dataset = leat.Dataset.litdata(folder)
    assert list(dataset.fields) == ["image", "label", "row", "meta.0", "meta.1"] and len(dataset) == 60
    assert dataset.key(20) == "chunk-0-1.bin:3"
    for number, found in enumerate(dataset):
        assert found["image"] == SAMPLES[number][0] and found["meta.0"] == SAMPLES[number][3]
        assert found["label"] == number - 30 and found["label"].dtype == np.int64
        assert found["row"].tolist() == list(range(number % 4)) and found["row"].dtype == np.uint16
        assert found["meta.1"] == bool(number % 2) and found["meta.1"].dtype == np.bool_


@pytest.mark.parametrize("shuffle", [True, False, "full", "stream"])
def test_batches_of_pictures_and_numbers(folder, shuffle):
    source = leat.Dataset(folder) if shuffle == "stream" else folder
    with leat.Loader(
        source, batch_size=6, shuffle=shuffle, epochs=1, output="numpy", fields=("image", "label", "row", "meta.0", "index"),
        ops=[DecodeImage("image", layout="HWC"), ParseText("meta.0")],
    ) as loader:  # fmt: skip
        seen = []
        for images, labels, rows, texts, index in loader:
            seen += index.tolist()
            assert labels.tolist() == (index - 30).tolist() and labels.dtype == np.int64
            assert [each.tolist() for each in rows] == [list(range(number % 4)) for number in index]
            assert texts == ["é" * (number % 4) for number in index]
            for image, number in zip(images, index):
                np.testing.assert_array_equal(image, pixels(int(number)))
    assert sorted(seen) == list(range(60))


def test_a_bool_is_true_unless_it_is_0(tmp_path, fresh_cache):
    folder = write_litdata(tmp_path / "chunks", "bool", [(bytes([number]),) for number in (0, 1, 2, 255)])
    assert [bool(found["data"]) for found in leat.Dataset(folder)] == [False, True, True, True]
    with leat.Loader(folder, batch_size=4, shuffle=False, fields=("data",), output="numpy") as loader:
        (flags,) = next(iter(loader))
    assert flags.view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("head", [">", "<"])
def test_arrays_of_any_shape(tmp_path, fresh_cache, head):
    code = 14 if head == ">" else 1
    rows = [np.arange(3 * (number + 1), dtype="<i2").reshape(-1, 3) for number in range(20)]
    samples = [(struct.pack(f"{head}4I", code, 2, *each.shape) + each.tobytes(),) for each in rows]
    folder = write_litdata(tmp_path / "chunks", {"a": "tensor" if head == ">" else "numpy"}, samples)
    options = {"batch_size": 5, "shuffle": False, "epochs": 1, "fields": ("a",), "output": "numpy"}
    with leat.Loader(folder, ops=[LoadLitdataArray("a", ragged=True)], **options) as loader:
        found = [each for (batch,) in loader for each in batch]
    assert [each.tolist() for each in found] == [each.tolist() for each in rows] and found[0].dtype == np.int16
    with pytest.raises(leat.InvalidArgument, match=r"leat\.ops\.LoadLitdataArray\(ragged=True\)"):
        with leat.Loader(folder, ops=[LoadLitdataArray("a")], **options) as loader:
            list(loader)
    whole = samples[1][0]
    for size in range(len(whole)):
        with pytest.raises(leat.Corrupt, match="LitData array"):
            Chain([LoadLitdataArray()])(whole[:size])


def test_every_way_to_name_a_folder(folder):
    for made in (
        leat.Dataset(folder), leat.Dataset(f"{folder}/"), leat.Dataset.litdata(folder), leat.Dataset.litdata(f"{folder}/"),
        leat.Dataset.litdata(folder / "index.json"), leat.Dataset.litdata(folder.as_uri()),
    ):  # fmt: skip
        assert len(made) == 60 and made[3]["meta.0"] == SAMPLES[3][3]
    whole = leat.Dataset(folder, extensions="bin")
    assert len(whole) == 4 and whole[0]["data"] == (folder / "chunk-0-0.bin").read_bytes()


def test_only_fields_that_are_asked_for(folder):
    assert list(leat.Dataset.litdata(folder, fields=["meta.1", "label"]).fields) == ["meta.1", "label"]
    with leat.Loader(folder, batch_size=6, shuffle=True, fields=("label",)) as loader:
        assert list(loader.dataset.fields) == ["label"]
    dataset = leat.Dataset(folder)
    assert len(dataset.filter(lambda of: of.parsed("label", int) >= 20)) == 10
    with pytest.raises(leat.InvalidArgument, match=r"no value 'lable'; it has image \(image:png\), label"):
        leat.Dataset.litdata(folder, fields=["lable"])
    for wrong, what in (("label", "it is a list"), ([], "names no value")):
        with pytest.raises(leat.InvalidArgument, match=what):
            leat.Dataset.litdata(folder, fields=wrong)
    with pytest.raises(leat.InvalidArgument, match=r"block_size= is for chunks.*TokensLoader"):
        leat.Dataset.litdata(folder, block_size=65)
    with pytest.raises(leat.InvalidArgument, match="at least 1"):
        leat.Dataset.litdata(folder, block_size=0)


@pytest.mark.parametrize("kind", ["pickle", "graph", "graph:pickle"])
def test_pickled_values_are_not_unpickled(tmp_path, fresh_cache, kind):
    bomb = b"cos\nsystem\n(S'touch unpickled'\ntR."
    folder = write_litdata(tmp_path / "chunks", {"label": "int", "meta": kind}, [(bytes(8), bomb)])
    with pytest.raises(leat.InvalidArgument, match=r"value 'meta' is pickled.*fields=\('label',\).*ops\.Python"):
        leat.Dataset(folder)
    assert leat.Dataset.litdata(folder, fields=["label"])[0] == {"label": 0}
    assert leat.Dataset.litdata(folder, fields=["meta"])[0] == {"meta": bomb}
    with leat.Loader(folder, batch_size=1, shuffle=False, fields=("label",), output="numpy") as loader:
        assert next(iter(loader))[0].tolist() == [0]


def test_trees_of_other_kinds(tmp_path, fresh_cache):
    def spec(type_, context, count):
        leaf = {"type": None, "context": None, "children_spec": []}
        return json.dumps([1, {"type": type_, "context": context, "children_spec": [leaf] * count}])

    folder = write_litdata(tmp_path / "chunks", ("int", "int"), [(bytes(8), bytes([1] + [0] * 7))])
    for type_, context, names in (
        ("collections.OrderedDict", '["b", "a"]', ["b", "a"]), ("collections.defaultdict", '{"dict_context": ["b", 7]}', ["b", "7"]),
        ("collections.namedtuple", '{"class_name": "P"}', ["0", "1"]), ("collections.deque", "null", ["0", "1"]),
    ):  # fmt: skip
        change_index(folder, lambda index, made=spec(type_, context, 2): index["config"].update(data_spec=made))
        assert leat.Dataset(folder)[0] == {names[0]: 0, names[1]: 1}
    for type_, context, error, what in (
        ("my.Own", "null", leat.InvalidArgument, "'my.Own'.*dicts, lists and tuples"),
        ("builtins.dict", '["a", "a"]', leat.InvalidArgument, "two values have the name 'a'"),
        ("builtins.dict", '["a", "\\n"]', leat.Corrupt, "a value's name"),
        ("builtins.dict", '["a"]', leat.Corrupt, "dict of 2 values"), ("builtins.dict", "{", leat.Corrupt, "dict of 2"),
        ("builtins.dict", '["a", null]', leat.Corrupt, "dict of 2"), ("builtins.dict", None, leat.Corrupt, "dict of 2"),
    ):  # fmt: skip
        change_index(folder, lambda index, made=spec(type_, context, 2): index["config"].update(data_spec=made))
        with pytest.raises(error, match=what):
            leat.Dataset(folder)
    for wrong in (spec("builtins.list", "null", 3), spec("builtins.list", "null", 1), "[2, {}]", "[1, {}]", "[1, 7]", "{", None,
                  '[1, {"type": "builtins.list", "children_spec": 7}]'):  # fmt: skip
        change_index(folder, lambda index, wrong=wrong: index["config"].update(data_spec=wrong))
        with pytest.raises(leat.Corrupt, match="no index of LitData's chunks"):
            leat.Dataset(folder)
    deep = '{"type": "builtins.list", "children_spec": [' * 3000
    change_index(folder, lambda index: index["config"].update(data_spec=f'[1, {deep}{"]}" * 3000}]'))
    with pytest.raises(leat.Corrupt):
        leat.Dataset(folder)


def test_what_cannot_be_read(folder, monkeypatch):
    whole = (folder / "index.json").read_text()
    for change, error, what in (
        ({"encryption": {"algorithm": "fernet"}}, leat.InvalidArgument, "encrypted"),
        ({"item_loader": "ParquetLoader"}, leat.InvalidArgument, r"leat\.Dataset\.parquet"),
        ({"item_loader": "TemporalArrayLoader"}, leat.InvalidArgument, "TemporalArrayLoader.*PyTreeLoader"),
        ({"compression": "lz4"}, leat.InvalidArgument, "'lz4', and Leat reads zstd"),
        ({"compression": "zstd", "compression_level": "row"}, leat.Corrupt, "compression_level"),
        ({"item_loader": "TokensLoader"}, leat.Corrupt, "data_spec has 1 values"),
        ({"data_format": []}, leat.Corrupt, "data_format"), ({"data_format": [1, 2, 3, 4, 5]}, leat.Corrupt, "format"),
        ({"data_format": ["str", "int", "no_header_numpy:14", "str", "bool"]}, leat.Corrupt, "no_header_numpy:14"),
        ({"data_format": ["str", "int", "no_header_tensor:10", "str", "bool"]}, leat.Corrupt, "no type of numbers"),
    ):  # fmt: skip
        change_index(folder, lambda index, change=change: index["config"].update(change))
        with pytest.raises(error, match=what):
            leat.Dataset.litdata(folder)
        (folder / "index.json").write_text(whole)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        change_index(folder, lambda index: index["config"].update(compression="zstd", compression_level="sample"))
        with pytest.raises(leat.InvalidArgument, match="need pyarrow.*pip install pyarrow"):
            leat.Dataset.litdata(folder)
    for wrong in (b"[]", b"{}", b'{"chunks": 7}', b'{"chunks": []}', b'{"chunks": [], "config": 7}', b"[" * 100_000, b"\xff"):
        write(folder / "index.json", wrong)
        with pytest.raises(leat.Corrupt, match="no index of LitData's chunks"):
            leat.Dataset.litdata(folder)
    (folder / "index.json").write_text(whole)
    change_index(folder, lambda index: index["chunks"].clear())
    with pytest.raises(leat.InvalidArgument, match="names no samples"):
        leat.Dataset.litdata(folder)


# --- Places ------------------------------------------------------------------


def test_a_web_server_that_cannot_list(folder, serve):
    served = serve(folder)
    assert [found["label"] for found in leat.Dataset.litdata(served.http_url)] == [number - 30 for number in range(60)]


def test_what_is_no_whole_folder_is_refused(folder, tmp_path):
    for given in ({"include": "*0.bin"}, {"exclude": "*0.bin"}):
        with pytest.raises(leat.InvalidArgument, match="index.json"):
            leat.Dataset(folder, **given)
    with pytest.raises(leat.InvalidArgument, match=r"without their index.json.*leat\.Dataset\.litdata"):
        leat.Dataset(f"{folder}/*.bin")
    with pytest.raises(leat.InvalidArgument, match="chunks of LitData.*concat"):
        leat.Dataset([folder, write_litdata(tmp_path / "more", SHAPE, SAMPLES)])
    with pytest.raises(leat.InvalidArgument, match=r'shuffle="stream" give them as leat\.Dataset\.litdata'):
        leat.Loader(folder, batch_size=1, shuffle="stream")
    with pytest.raises(leat.NotFound, match=r"index.json.*LitData's optimize"):
        leat.Dataset.litdata(tmp_path)


def test_parts_joined_and_pickled(folder, tmp_path):
    dataset = leat.Dataset(folder)
    packed = write_arrow(tmp_path / "packed", [{"a": number} for number in range(5)], {"a": "int"})
    more = leat.Dataset(write_litdata(tmp_path / "more", SHAPE, SAMPLES[:5]))
    both = leat.Dataset.concat([dataset.select([59, 3]), more])
    assert [found["label"] for found in both] == [29, -27, -30, -29, -28, -27, -26]
    again = pickle.loads(pickle.dumps(both))
    assert again[1]["row"].tolist() == both[1]["row"].tolist()
    plain = write_litdata(tmp_path / "plain", {"a": "int"}, [(struct.pack("<q", 9),)])
    joined = pickle.loads(pickle.dumps(leat.Dataset.concat([leat.Dataset(plain), leat.Dataset(packed)])))
    assert [found["a"] for found in joined] == [9, 0, 1, 2, 3, 4]
    pickled = pickle.dumps(dataset)
    write_litdata(folder, SHAPE, SAMPLES[:40], each=17)
    with pytest.raises(leat.InvalidArgument, match="other data"):
        pickle.loads(pickled)


# --- What is read ------------------------------------------------------------


def test_heads_alone_are_read_if_one_value_has_no_fixed_size(tmp_path, fresh_cache, serve):
    rng = np.random.default_rng(3)
    samples = [(rng.bytes(30_000 + number), struct.pack("<q", number)) for number in range(100)]
    served = serve(write_litdata(tmp_path / "bucket", ("bytes", "int"), samples, each=25))
    dataset = leat.Dataset.litdata(served.url, **served.options)
    counters = served.counters()
    assert counters["get"] <= 1 + 4 + 1 and counters["bytes"] < 150_000, counters
    served.reset()
    leat.Dataset.litdata(served.url, **served.options)
    assert served.counters()["get"] <= 2  # The index, and whether the chunks may be read.
    for number in (0, 24, 25, 99):
        assert dataset[number] == {"0": samples[number][0], "1": number}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """12 chunks of 17 MB: 24 pieces of 8 MiB."""
    rng = np.random.default_rng(4)
    samples = [(rng.bytes(180_000), struct.pack("<q", number), f"{number}".encode()) for number in range(12 * 96)]
    shape = {"data": "bytes", "label": "int", "name": "str"}
    return write_litdata(tmp_path_factory.mktemp("large") / "chunks", shape, samples, each=96)


def test_any_number_of_ranks_reads_each_piece_about_once(large, serve):
    served = serve(large)
    dataset = leat.Dataset(served.url, **served.options)
    size = sum(path.stat().st_size for path in large.glob("*.bin"))
    assert steps_if_read_about_once(dataset, served, size, check_label_and_name) == 24


def test_a_chunk_that_was_changed_is_noticed(folder, serve):
    served = serve(folder)
    dataset = leat.Dataset.litdata(served.url, **served.options)
    path = folder / "chunk-0-1.bin"
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(leat.Corrupt, match=r"chunk-0-1\.bin"):
        list(dataset)


# --- Damage ------------------------------------------------------------------


def scan(folder: pathlib.Path, data: bytes):
    """The places in a first chunk of these bytes."""
    index = _litdata.parse((folder / "index.json").read_bytes(), "index.json")
    return _litdata_chunks.scan_chunk(
        index.chunks[0], len(data), index.leaves, index.leaves, lambda at, length: data[at : at + length]
    )


def test_a_chunk_that_is_cut_short(folder):
    path = folder / "chunk-0-0.bin"
    whole, index = path.read_bytes(), (folder / "index.json").read_text()
    assert len(scan(folder, whole)) == 5
    for size in range(len(whole)):
        with pytest.raises(leat.Corrupt):
            scan(folder, whole[:size])
    for size in (0, 3, 4, 80, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        (folder / "index.json").write_text(index)
        with pytest.raises(leat.Corrupt, match=rf"chunk-0-0\.bin .*{size} bytes, and index\.json says {len(whole)}"):
            leat.Dataset.litdata(folder, refresh="always")
        change_index(folder, lambda index, size=size: index["chunks"][0].update(chunk_bytes=size))
        with pytest.raises(leat.Corrupt, match=r"chunk-0-0\.bin is no chunk of LitData, or it is damaged"):
            leat.Dataset.litdata(folder, refresh="always")
    path.unlink()
    with pytest.raises(leat.NotFound, match=r"chunk-0-0\.bin"):
        leat.Dataset.litdata(folder, refresh="always")


def test_any_byte_of_a_head_may_be_wrong(tmp_path, fresh_cache):
    folder = write_litdata(tmp_path / "chunks", SHAPE, SAMPLES[:9])
    path = folder / "chunk-0-0.bin"
    whole = path.read_bytes()
    begins = struct.unpack_from("<10I", whole, 4)
    assert begins[0] == 44 and begins[-1] == len(whole)
    for place in [*range(44), *(place for begin in begins[:-1] for place in range(begin, begin + 20))]:
        for bit in (0x01, 0x80):
            spoilt = bytearray(whole)
            spoilt[place] ^= bit
            with pytest.raises(leat.Corrupt):
                scan(folder, bytes(spoilt))
    path.write_bytes(spoilt)
    with pytest.raises(leat.Corrupt, match=r"chunk-0-0\.bin is no chunk"):
        leat.Dataset.litdata(folder, refresh="always")


@pytest.mark.parametrize("shape", [("int", "bytes"), ("int",)])
def test_sizes_that_the_formats_do_not_have(tmp_path, fresh_cache, shape):
    """LitData has written ints as texts once."""
    folder = write_litdata(tmp_path / "chunks", shape, [(b"7", b"abcdefghijkl")[: len(shape)]] * 3)
    with pytest.raises(leat.Corrupt, match=r"chunk-0-0\.bin is no chunk"):
        leat.Dataset(folder)


def test_names_that_lead_elsewhere_are_corrupt(folder):
    for key in ("../chunk-0-0.bin", "/etc/passwd", "a//b.bin", "a\\b.bin", "x#leat:derived", "", 7, "a\nb"):
        change_index(folder, lambda index, key=key: index["chunks"][0].update(filename=key))
        with pytest.raises(leat.Corrupt, match="no index of LitData's chunks"):
            leat.Dataset.litdata(folder)
    change_index(folder, lambda index: index["chunks"][0].update(filename="chunk-0-1.bin"))
    with pytest.raises(leat.Corrupt, match="twice"):
        leat.Dataset.litdata(folder)


def test_any_byte_of_an_index_may_be_wrong(tmp_path, fresh_cache):
    folder = write_litdata(tmp_path / "chunks", SHAPE, SAMPLES[:9], each=5)
    whole = (folder / "index.json").read_bytes()
    caught = set()
    for place in range(0, len(whole), 7):
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x04
        (folder / "index.json").write_bytes(spoilt)
        try:
            found = [list(each.values()) for each in leat.Dataset.litdata(folder)]
        except leat.Error as error:
            caught.add(type(error))
        else:  # Another name, or a setting that only the writer needs.
            assert [each[0] for each in found] == [each[0] for each in SAMPLES[:9]], spoilt
    assert leat.Corrupt in caught and caught <= {leat.Corrupt, leat.NotFound, leat.InvalidArgument}


def test_tokens_that_do_not_fit(tmp_path, fresh_cache):
    folder = tmp_path / "chunks"
    folder.mkdir()
    items = [np.arange(count, dtype="<i4").tobytes() for count in (5, 0, 7)]
    data = chunk_of(items)
    entry = {"chunk_bytes": len(data), "chunk_size": 3, "dim": 12, "filename": "chunk-0-0.bin"}
    config = {"item_loader": "TokensLoader"}
    (folder / "chunk-0-0.bin").write_bytes(data)
    write_index(folder, [entry], "no_header_tensor:16", **config)
    assert [found["tokens"].tolist() for found in leat.Dataset(folder)] == [list(range(5)), list(range(7))]
    windows = leat.Dataset.litdata(folder, block_size=5)
    assert [found["tokens"].tolist() for found in windows] == [list(range(5)), list(range(5))]
    write_index(folder, [entry], "no_header_tensor:16", item_loader=None)  # As old ones are.
    assert len(leat.Dataset(folder)) == 2
    for change, what in (({"dim": 13}, "12 tokens"), ({"dim": None}, "tokens"), ({"chunk_size": 4}, "3 samples")):
        write_index(folder, [{**entry, **change}], "no_header_tensor:16", **config)
        with pytest.raises(leat.Corrupt, match=what):
            leat.Dataset(folder)
    write_index(folder, [entry], "no_header_tensor:18", **config)
    with pytest.raises(leat.Corrupt, match="no whole number of int64"):
        leat.Dataset(folder)
    write_index(folder, [entry], "bytes", **config)
    with pytest.raises(leat.Corrupt, match="no numbers"):
        leat.Dataset(folder)


def test_an_index_is_read_in_a_moment_whatever_it_claims():
    chunk = {"chunk_bytes": 100, "chunk_size": 2**32 - 1, "dim": None, "filename": "chunk-0-0.bin"}
    config = {"data_format": ["int"], "data_spec": '[1, {"type": null, "context": null, "children_spec": []}]'}
    index = _litdata.parse(json.dumps({"chunks": [chunk], "config": config}).encode(), "index.json")
    with pytest.raises(leat.Corrupt, match="too few"):
        _litdata_chunks.scan_chunk(index.chunks[0], 100, index.leaves, index.leaves, lambda at, length: bytes(length))
