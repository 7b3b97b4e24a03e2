"""TFRecord files, read field by field as protobuf and the package tfrecord read them."""

from __future__ import annotations

import gzip
import pathlib
import random
import zlib

import numpy as np
import pytest

import leat
from leat.ops import Chain, DecodeImage, ParseFeature, ParseText
from small_datasets import encoded, pixels, write

tfrecord = pytest.importorskip("tfrecord", reason="the package tfrecord is not in Debian: pip install tfrecord")
Example, Feature = tfrecord.example_pb2.Example, tfrecord.example_pb2.Feature

MIB = 2**20


def file_of(path: pathlib.Path, examples) -> pathlib.Path:
    """A file of records; an example has values and their kind, byte, int or float, by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = tfrecord.TFRecordWriter(str(path))
    for example in examples:
        writer.write(example)
    writer.close()
    return path


def file_of_records(path: pathlib.Path, records) -> pathlib.Path:
    def framed(record: bytes) -> bytes:
        length = len(record).to_bytes(8, "little")
        crc_of = tfrecord.TFRecordWriter.masked_crc
        return length + crc_of(length) + record + crc_of(record)

    return write(path, b"".join(map(framed, records)))


def records_of(path: pathlib.Path) -> list[bytes]:
    return [bytes(record) for record in tfrecord.tfrecord_iterator(str(path))]


# --- what is written is read --------------------------------------------------


def odd(number: int) -> dict:
    """A sample with features that are missing, empty, several, large, or oddly named."""
    rng = random.Random(number)
    if number % 97 == 5:
        return {}
    example = {"number": ([number], "int")}
    if rng.random() < 0.8:
        size = 5_000_000 if number % 400 == 7 else rng.choice([0, 1, 127, 128, 16_383, 16_384, 30_000])
        example["image/encoded"] = ([rng.randbytes(size)], "byte")
    if rng.random() < 0.8:
        example["words"] = ([rng.randbytes(rng.randrange(200)) for _ in range(rng.randrange(4))], "byte")
    if rng.random() < 0.5:
        example["größe 🐈.x"] = ([rng.choice([0, 1, -1, 127, 128, 2**63 - 1, -(2**63)])
                                  for _ in range(rng.randrange(60))], "int")  # fmt: skip
    if rng.random() < 0.5:
        example["Label"] = ([rng.choice([0.0, -1.5, 1e-40, float("inf"), float("nan")])
                             for _ in range(rng.randrange(40))], "float")  # fmt: skip
    if rng.random() < 0.5:
        example["label"] = ([b"label"], "byte")
    names = list(example)
    rng.shuffle(names)
    return {name: example[name] for name in names}


def assert_same(sample: dict, record: bytes) -> None:
    features = Example.FromString(record).features.feature
    got = {name: value for name, value in sample.items() if value is not None}
    if not features:
        assert got == {"tfrecord": record}
        return
    for name, feature in features.items():
        kind = feature.WhichOneof("kind")
        if kind == "bytes_list" and len(feature.bytes_list.value) == 1:
            assert got.pop(name) == feature.bytes_list.value[0]
        elif kind == "bytes_list":
            assert Feature.FromString(got.pop(name + "[]")) == feature
        else:
            array = Chain([ParseFeature(ragged=True)])(got.pop(name))
            dtype = np.int64 if kind == "int64_list" else np.float32
            np.testing.assert_array_equal(array, np.array(getattr(feature, kind).value, dtype), strict=True)
    assert not got


def test_a_thousand_odd_samples(tmp_path, fresh_cache):
    for shard in range(4):
        file_of(tmp_path / "odd" / f"{shard}.tfrecord", map(odd, range(shard * 250, shard * 250 + 250)))

    dataset = leat.Dataset(tmp_path / "odd")

    assert len(dataset) == 1000 and set(dataset.fields.values()) == {"bytes"}
    assert dataset.key(251) == "1.tfrecord:1"
    records = [record for shard in range(4) for record in records_of(tmp_path / "odd" / f"{shard}.tfrecord")]
    for number, record in enumerate(records):
        assert_same(dataset[number], record)


def sample(number: int) -> dict:
    return {
        "image/encoded": ([encoded(pixels(number))], "byte"),
        "image/class/label": ([number % 3 - 1], "int"),
        "image/object/bbox/xmin": ([number / 4] * (number % 3), "float"),
        "size": ([10, 12], "int"),
        "caption": ([f"nº {number}".encode()], "byte"),
    }


@pytest.fixture
def small_files(tmp_path, fresh_cache):
    for shard in range(4):
        file_of(tmp_path / "files" / f"x-{shard:05}-of-00004.tfrecord", map(sample, range(shard * 10, shard * 10 + 10)))
    return tmp_path / "files"


OPS = [
    DecodeImage("image/encoded"), ParseFeature("image/class/label", to="label"), ParseFeature("size", dtype="int32"),
    ParseFeature("image/object/bbox/xmin", to="xmin", ragged=True), ParseText("caption"),
]  # fmt: skip
OPTIONS = {"ops": OPS, "ids": True, "batch": "dict", "output": "numpy"}


@pytest.mark.parametrize("shuffle", [False, True, "full", "stream"])
def test_batches_of_features(small_files, shuffle):
    seen = []
    with leat.Loader(f"{small_files}/x-*.tfrecord", global_batch_size=8, shuffle=shuffle, **OPTIONS) as loader:
        for batch in loader:
            assert batch["label"].dtype == np.int64 and batch["size"].dtype == np.int32
            for at, number in enumerate(batch["index"].tolist()):
                np.testing.assert_array_equal(batch["image"][at], pixels(number).transpose(2, 0, 1))
                assert batch["label"][at] == number % 3 - 1 and batch["size"][at].tolist() == [10, 12]
                assert batch["caption"][at] == f"nº {number}"
                np.testing.assert_array_equal(batch["xmin"][at], np.float32([number / 4] * (number % 3)))
            seen += batch["index"].tolist()
    assert sorted(seen) == list(range(40))


def test_a_number_of_values_that_differs_is_told(small_files):
    with pytest.raises(leat.InvalidArgument, match=r"ParseFeature\(ragged=True\)"):
        list(leat.Loader(small_files, global_batch_size=8, shuffle=False, output="numpy",
                         ops=[ParseFeature("image/object/bbox/xmin")], fields=["image/object/bbox/xmin"]))  # fmt: skip


def test_a_feature_of_bytes_is_no_feature_of_numbers(small_files):
    with pytest.raises(leat.Corrupt, match="caption: no tf.train.Feature of numbers.*a bytes feature needs"):
        list(leat.Loader(small_files, global_batch_size=8, shuffle=False, output="numpy",
                         ops=[ParseFeature("caption")], fields=["caption"]))  # fmt: skip


def test_other_records_are_one_field(tmp_path, fresh_cache):
    records = [b"", b"text", b"\0" * 100, tfrecord.TFRecordWriter.serialize_tf_sequence_example(
        {"length": (2, "int")}, {"frames": ([b"1", b"2"], "byte")})]  # fmt: skip
    file_of_records(tmp_path / "other" / "0.tfrecords", records)

    dataset = leat.Dataset(tmp_path / "other")

    assert [dataset[number] for number in range(4)] == [{"tfrecord": record} for record in records]


# --- names --------------------------------------------------------------------


def test_files_as_tensorflow_datasets_names_them(tmp_path, fresh_cache):
    folder = tmp_path / "tfds"
    for shard in range(2):
        file_of(folder / f"mnist-train.tfrecord-{shard:05}-of-00002", map(sample, range(shard * 5, shard * 5 + 5)))
    write(folder / "dataset_info.json", b"{}")
    write(folder / "features.json", b"{}")

    assert len(leat.Dataset(folder)) == 10
    assert len(leat.Dataset(f"{folder}/mnist-train.tfrecord-*")) == 10
    assert leat.Dataset(folder).key(7) == "mnist-train.tfrecord-00001-of-00002:2"

    write(folder / "label.labels.txt", b"0\n1\n")
    with pytest.raises(leat.InvalidArgument, match=r'is a tfrecord shard and .*extensions="tfrecord"'):
        leat.Dataset(folder, refresh="always")
    assert len(leat.Dataset(folder, extensions="tfrecord")) == 10


# --- damage -------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path, fresh_cache):
    """opened(data): a dataset of a sound file and one of these bytes."""
    file_of(tmp_path / "bad" / "0.tfrecord", [sample(0)])

    def open_them(data: bytes) -> leat.Dataset:
        write(tmp_path / "bad" / "1.tfrecord", data)
        return leat.Dataset(tmp_path / "bad", refresh="always")

    return open_them


def test_a_file_that_is_cut_short(opened, tmp_path):
    whole = file_of(tmp_path / "whole", map(sample, range(3))).read_bytes()
    ends = np.cumsum([16 + len(record) for record in records_of(tmp_path / "whole")]).tolist()
    for size in random.Random(1).sample(range(1, len(whole)), 60):
        if size not in ends:
            with pytest.raises(leat.Corrupt, match=r"1\.tfrecord: at byte \d+: record \d: the file is cut short"):
                opened(whole[:size])
    # TensorFlow cannot tell either.
    assert [len(opened(whole[:end])) for end in ends] == [2, 3, 4]


def test_any_byte_may_be_wrong(opened, tmp_path):
    whole = file_of(tmp_path / "whole", map(sample, range(3))).read_bytes()
    for at in random.Random(2).sample(range(len(whole)), 60):
        bad = bytearray(whole)
        bad[at] ^= 0x10
        with pytest.raises(leat.Corrupt, match=r"1\.tfrecord: at byte \d+: record \d: the CRC of its .* does not match"):
            opened(bytes(bad))


def test_a_record_that_is_no_example_among_examples(opened, tmp_path):
    records = [*records_of(file_of(tmp_path / "whole", [sample(0)])), b"a text"]
    with pytest.raises(leat.Corrupt, match="record 1: no tf.train.Example, as those before it are"):
        opened(file_of_records(tmp_path / "mixed", records).read_bytes())


def test_a_feature_that_changes_its_kind(opened, tmp_path):
    path = file_of(tmp_path / "mixed", [{"x": ([1], "int")}, {"x": ([1.5], "float")}])
    with pytest.raises(leat.Corrupt, match="record 1: feature 'x' is of kind float_list, and of kind int64_list before"):
        opened(path.read_bytes())


@pytest.mark.parametrize("name, compress", [("gzip", gzip.compress), ("zlib", zlib.compress)])
def test_compressed_files_are_refused(opened, tmp_path, name, compress):
    data = compress(file_of(tmp_path / "whole", [sample(0)]).read_bytes())
    with pytest.raises(leat.InvalidArgument, match=rf"the file is compressed \({name}\).*write it without compression"):
        opened(data)
    write(tmp_path / "packed" / "0.tfrecord.gz", data)
    with pytest.raises(leat.InvalidArgument, match="'0.tfrecord.gz' is a compressed archive"):
        leat.Dataset(tmp_path / "packed")


# --- over a bucket --------------------------------------------------------------

SHARDS, SAMPLES, STEP = 12, 96, 48
USUAL = {"global_batch_size": STEP, "shuffle": True, "drop_last": True, "ids": True, "batch": "dict", "output": "numpy",
         "memory": "1GiB", "epochs": 1, "ops": [ParseFeature("label"), ParseText("name")]}  # fmt: skip


@pytest.fixture(scope="module")
def large_files(tmp_path_factory):
    """17 MB a file, so two pieces each."""
    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(4)
    for shard in range(SHARDS):
        file_of(folder / f"{shard:02}.tfrecord", (
            {"image": ([rng.bytes(180_000)], "byte"), "label": ([shard], "int"), "name": ([f"{shard}-{number}".encode()], "byte")}
            for number in range(SAMPLES)
        ))  # fmt: skip
    return folder


def size_of(folder) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def of_all_ranks(make, world: int):
    """The ids of each step, over all ranks; and the hash of all contents."""
    steps: list[list[int]] = []
    hashes = 0
    for rank in range(world):
        with make(rank=rank, world_size=world) as loader:
            for number, batch in enumerate(loader):
                if rank == 0:
                    steps.append([])
                steps[number].extend(batch["index"].tolist())
                assert batch["name"] == [f"{i // SAMPLES}-{i % SAMPLES}" for i in batch["index"]]
                assert (batch["label"] == batch["index"] // SAMPLES).all()
            hashes += int(loader.stats()[-1]["content_hash"], 16)
    return [sorted(step) for step in steps], hashes % 2**128


def test_any_number_of_ranks_reads_each_piece_about_once(large_files, serve):
    served = serve(large_files)
    found = {}
    for world in (1, 2, 8):
        leat.Dataset(served.url, **served.options)
        served.reset()
        found[world] = of_all_ranks(lambda **rank: served.loader(**USUAL, **rank), world)
        counters = served.counters()
        assert counters["get"] <= 1.3 * size_of(large_files) / (8 * MIB) + world, (world, counters)
        assert counters["bytes"] <= 1.1 * size_of(large_files), (world, counters)
    assert found[1] == found[2] == found[8]


def test_an_index_reads_each_byte_once(large_files, serve, fresh_cache):
    served = serve(large_files)
    leat.Dataset(served.url, **served.options)
    counters = served.counters()
    assert counters["bytes"] <= 1.01 * size_of(large_files)
    assert counters["get"] <= size_of(large_files) / (4 * MIB) + SHARDS + 2


def test_a_stream_indexes_while_it_reads(large_files, serve, fresh_cache):
    served = serve(large_files)
    options = {**USUAL, "shuffle": "stream", "drop_last": False, "fields": ("image", "label", "name"), "rank": 0, "world_size": 1}
    with served.loader(**options) as loader:
        streamed = [batch["index"].tolist() for batch in loader]
        first = loader.stats()[0]
    assert served.counters()["bytes"] <= 1.05 * size_of(large_files)
    dataset = leat.Dataset(served.url, **served.options)
    with leat.Loader(dataset, **options) as loader:
        assert [batch["index"].tolist() for batch in loader] == streamed
        assert loader.stats()[0]["content_hash"] == first["content_hash"]
