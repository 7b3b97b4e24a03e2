"""Parquet files whose rows are samples, with the bytes of pictures in them."""

from __future__ import annotations

import json
import logging
import pathlib
import pickle
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import leat
from leat.ops import DecodeImage
from small_datasets import encoded, pixels, write

ROWS = 60
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
HUB = {b"huggingface": b'{"info": {"features": {"label": {"names": ["ant", "bee", "cat"]}}}}'}


def table_of(first: int, last: int, *, large: bool = False) -> pa.Table:
    """Rows as the Hub keeps them, and columns of other kinds."""
    rows = range(first, last)
    binary = pa.large_binary() if large else pa.binary()
    return pa.table({
        "image": pa.array([{"bytes": encoded(pixels(row)), "path": f"{row}.png"} for row in rows], IMAGE),
        "label": pa.array([row % 3 for row in rows], pa.int64()),
        "raw": pa.array([bytes([row]) * (row % 5) for row in rows], binary),
        "caption": [f"number {row}" for row in rows],
        "weight": pa.array([row / 4 for row in rows], pa.float32()),
        "boxes": [[1.0, 2.0]] * len(rows),
    }).replace_schema_metadata(HUB)  # fmt: skip


def write_files(folder: pathlib.Path, *, rows: int = ROWS, files: int = 2, large: bool = False, **options):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        table = table_of(number * rows // files, (number + 1) * rows // files, large=large)
        parquet.write_table(table, folder / f"train-{number:05}.parquet", **{"row_group_size": 7, **options})
    return folder


@pytest.fixture
def hub(tmp_path, fresh_cache):
    return write_files(tmp_path / "hub")


@pytest.mark.parametrize("compression", ["snappy", "zstd", "gzip", "none"])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_values_are_those_that_were_written(tmp_path, fresh_cache, compression, use_dictionary, version):
    folder = write_files(
        tmp_path / "hub", compression=compression, use_dictionary=use_dictionary,
        data_page_version=version, data_page_size=400, write_batch_size=2, large=version == "2.0",
    )  # fmt: skip

    dataset = leat.Dataset.parquet(folder, fields=("image", "raw"))

    assert len(dataset) == ROWS
    for row in range(ROWS):
        assert dataset[row] == {"image": encoded(pixels(row)), "raw": bytes([row]) * (row % 5)}, row


def test_files_of_several_folders(tmp_path, fresh_cache):
    """Their names are the same, so only the place tells them apart."""
    for number, name in enumerate("ab"):
        parquet.write_table(table_of(3 * number, 3 * number + 3), write(tmp_path / name / "0.parquet", b""))

    dataset = leat.Dataset.parquet([tmp_path / "a", tmp_path / "b"], fields=("raw", "image", "label"))

    wanted = [(bytes([row]) * (row % 5), encoded(pixels(row)), row % 3) for row in range(6)]
    assert [tuple(found.values()) for found in dataset] == wanted
    twice = leat.Dataset.concat([leat.Dataset.parquet(tmp_path / "b", fields=("raw", "image", "label")), dataset])
    assert [tuple(found.values()) for found in twice] == [*wanted[3:], *wanted]


def test_kinds_of_columns(hub, caplog):
    with caplog.at_level(logging.INFO, logger="leat"):
        dataset = leat.Dataset(hub)

    assert dataset.fields == {
        "image": "bytes", "label": "int64", "raw": "bytes", "caption": "string", "weight": "float64",
    }  # fmt: skip
    assert "no fields" in caplog.text and "boxes" in caplog.text
    assert dataset.classes == ["ant", "bee", "cat"]
    assert dataset.key(31) == "train-00001.parquet:1"
    assert dataset.column("label").tolist() == [row % 3 for row in range(ROWS)]
    assert dataset.column("caption")[59] == "number 59"
    assert dataset.lengths("raw").tolist() == [row % 5 for row in range(ROWS)]


@pytest.mark.parametrize("shuffle", [True, False, "full", "stream"])
@pytest.mark.parametrize("world", [1, 2])
def test_each_row_comes_once_in_any_order(hub, shuffle, world):
    found, first = [], []
    for rank in range(world):
        with leat.Loader(
            str(hub / "train-*.parquet"), batch_size=4, shuffle=shuffle, drop_last="pad" if world == 2 else False,
            fields=("image", "label", "index", *(["valid"] if world == 2 else [])), output="numpy",
            ops=[DecodeImage("image", layout="HWC")], rank=rank, world_size=world,
        ) as loader:  # fmt: skip
            for images, labels, index, *valid in loader:
                for image, label, row in zip(images, labels, index):
                    assert np.array_equal(image, pixels(int(row))) and label == row % 3
                found += index[valid[0]].tolist() if valid else index.tolist()
                first.append(index.tolist())
    assert sorted(found) == list(range(ROWS))
    assert (first[0] == [0, 1, 2, 3]) == (shuffle is False)


def test_every_way_to_name_them(hub):
    for url in (hub, f"{hub}/", str(hub / "train-{00000..00001}.parquet"), [hub / "train-00000.parquet", hub / "train-00001.parquet"]):
        loader = leat.Loader(url, batch_size=5, shuffle=False, fields=("raw",), output="numpy")
        assert list(loader.dataset.fields) == ["raw"]
        assert sum(len(raw) for (raw,) in loader) == ROWS
    assert len(leat.Dataset(hub / "train-00001.parquet")) == ROWS // 2


def test_a_stream_of_a_folder_names_what_to_give(hub):
    with pytest.raises(leat.InvalidArgument, match=r"leat\.Dataset\.parquet"):
        leat.Loader(hub, batch_size=1, shuffle="stream")
    assert len(leat.Loader(leat.Dataset.parquet(hub), batch_size=1, shuffle="stream")) == ROWS


def test_files_can_still_be_read_whole(hub):
    files = leat.Dataset(hub, extensions="parquet")
    assert files.fields == {"data": "bytes"} and len(files) == 2
    assert files[0]["data"] == (hub / "train-00000.parquet").read_bytes()


@pytest.mark.parametrize("name", ["a.b", "x#leat:made;1;2;3;4;5;;61", "ü/;%"])
def test_columns_may_have_any_name(tmp_path, fresh_cache, name):
    parquet.write_table(pa.table({name: [b"one", b"two"], "a": [1, 2]}), tmp_path / "x.parquet")
    dataset = leat.Dataset.parquet(tmp_path / "x.parquet", fields=[name])
    assert [sample[name] for sample in dataset] == [b"one", b"two"]


def test_other_fields_of_bytes_come_too(hub):
    for loader in (
        leat.Loader(hub, batch_size=6, shuffle=True, seed=3, fields=("raw", "image", "index"), output="numpy"),
        leat.Loader(leat.Dataset.parquet(hub), batch_size=6, train=True, fields=("raw", "image", "index"), output="numpy"),
    ):  # fmt: skip
        for raw, image, index in loader:
            assert raw.tolist() == [bytes([row]) * (row % 5) for row in index]
            assert image.tolist() == [encoded(pixels(row)) for row in index]


def test_part_of_the_samples_and_joined_with_others(hub, tmp_path):
    rows = leat.Dataset.parquet(hub, fields=["image"])
    for number in range(3):
        write(tmp_path / "files" / f"{number}.png", encoded(pixels(100 + number)))
    files = leat.Dataset.from_manifest(
        write(tmp_path / "files" / "list.csv", b"path\n0.png\n1.png\n2.png\n"), fields={"image": "path"}
    )

    both = leat.Dataset.concat([files, rows.select([59, 3, 3]), rows[10:12]])

    wanted = [100, 101, 102, 59, 3, 3, 10, 11]
    assert [sample["image"] for sample in both] == [encoded(pixels(row)) for row in wanted]
    loader = leat.Loader(both, batch_size=8, shuffle=False, fields=("image",), output="numpy")
    assert next(iter(loader))[0].tolist() == [encoded(pixels(row)) for row in wanted]


def test_it_pickles_and_is_made_again(hub):
    dataset = leat.Dataset.parquet(hub, fields=["label", "image"])
    again = pickle.loads(pickle.dumps(dataset[5:9]))
    assert again[0] == dataset[5]
    pickled = pickle.dumps(dataset)
    write_files(hub, rows=30)
    leat.Dataset.parquet(hub, refresh="always")
    with pytest.raises(leat.InvalidArgument, match="other data"):
        pickle.loads(pickled)


def test_resume_goes_on_at_the_next_row(hub):
    options = {"batch_size": 4, "train": True, "fields": ("index", "image"), "output": "numpy"}
    loader = leat.Loader(hub, **options)
    whole = [index.tolist() for index, _ in loader]
    loader = leat.Loader(hub, **options)
    batches = iter(loader)
    seen = [next(batches)[0].tolist() for _ in range(5)]
    state = loader.state_dict()
    loader = leat.Loader(hub, **options)
    loader.load_state_dict(state)
    assert seen + [index.tolist() for index, _ in loader] == whole


class TestOverABucket:
    @pytest.fixture
    def served(self, tmp_path, fresh_cache):
        # Noise: what is stored is as long as what is meant.
        folder = tmp_path / "buckets" / "hub"
        folder.mkdir(parents=True)
        noise = np.random.default_rng(0)
        for number in range(2):
            rows = [noise.bytes(3000 + row) for row in range(120)]
            table = pa.table({"raw": pa.array(rows, pa.binary()), "label": list(range(120))})
            parquet.write_table(table, folder / f"{number}.parquet", row_group_size=20)
        with leat.testing.Bucket(tmp_path / "buckets", latency="1ms") as bucket:
            yield bucket, {"storage_options": {"endpoint_url": bucket.url, "no_sign_request": True}}

    def test_an_epoch_asks_for_each_row_group_once(self, served):
        bucket, options = served
        dataset = leat.Dataset.parquet("s3://hub", **options)
        for shuffle in (False, True, "stream"):
            with leat.Loader(dataset, batch_size=16, shuffle=shuffle, drop_last=False, epochs=1, fields=("raw",), output="numpy") as loader:
                bucket.reset_counters()
                assert sum(len(raw) for (raw,) in loader) == 240
            counts = bucket.counters()
            assert 12 <= counts["get"] <= 12 + 12, shuffle  # And footers, at most one each.

    def test_a_cache_answers_later_epochs(self, served):
        bucket, options = served
        with leat.Loader(
            leat.Dataset.parquet("s3://hub", **options), batch_size=16, train=True, epochs=3, fields=("raw",),
            cache=leat.Cache(ram="64MiB"), drop_last=False, output="numpy",
        ) as loader:  # fmt: skip
            for _ in loader:
                pass
            bucket.reset_counters()
            for _ in range(2):
                assert sum(len(raw) for (raw,) in loader) == 240
        assert bucket.counters()["get"] == 0

    @pytest.mark.parametrize("kind", ["rows of equal length", "columns of equal length"])
    @pytest.mark.parametrize("tier", ["ram", "disk"])
    def test_a_cache_tells_the_parts_of_a_file_apart(self, tmp_path, fresh_cache, kind, tier):
        """Row groups and columns that are made from one file have the same places in what is made."""
        folder = tmp_path / "buckets" / "hub"
        folder.mkdir(parents=True)
        rows = [bytes([group, place]) * 500 for group in range(8) for place in range(16)]
        columns = {"raw": rows} if kind == "rows of equal length" else {"raw": rows, "left": [b"l" * 1000] * len(rows)}
        table = pa.table({name: pa.array(values, pa.binary()) for name, values in columns.items()})
        parquet.write_table(table, folder / "0.parquet", row_group_size=16)
        cache = leat.Cache(ram="64MiB") if tier == "ram" else leat.Cache(disk=str(tmp_path / "disk"), disk_limit="64MiB")
        with leat.testing.Bucket(tmp_path / "buckets", latency="1ms") as bucket:
            options = {"storage_options": {"endpoint_url": bucket.url, "no_sign_request": True}}
            for _ in range(2):
                with leat.Loader(leat.Dataset.parquet("s3://hub", **options), batch_size=16, train=True, epochs=2, drop_last=False,
                                 fields=tuple(columns), cache=cache, output="numpy") as loader:  # fmt: skip
                    for _ in range(2):
                        read = list(zip(*(sum(([bytes(value) for value in part] for part in parts), []) for parts in zip(*loader))))
                        assert sorted(value[0] for value in read) == sorted(rows)
                        assert all(value[1] == b"l" * 1000 for value in read if len(columns) == 2)
                    stats = loader.stats()
        assert stats[-1]["cache"][f"{tier}_hits"] > 0
        assert stats[-1]["cache"]["misses"] == 0
        assert tier == "ram" or stats[0]["cache"]["misses"] == 0  # The first loader's are there.

    def test_bytes_are_read_once_to_learn_lengths_and_never_again(self, served):
        bucket, options = served
        leat.Dataset.parquet("s3://hub", **options)
        first = bucket.counters()["get"]
        bucket.reset_counters()
        leat.Dataset.parquet("s3://hub", **options)
        assert first >= 12
        assert bucket.counters()["get"] <= 2  # A footer, and whether the listing holds.

    def test_a_file_that_was_changed_is_noticed(self, served, tmp_path):
        bucket, options = served
        dataset = leat.Dataset.parquet("s3://hub", **options)
        path = tmp_path / "buckets" / "hub" / "0.parquet"
        table = parquet.read_table(path)
        parquet.write_table(table.take(list(range(119, -1, -1))), path, row_group_size=20)

        with pytest.raises(leat.Corrupt, match="0.parquet"):
            for sample in dataset:
                pass


    def test_columns_of_a_file_that_was_written_anew_are_read_anew(self, served, tmp_path, fresh_cache):
        """As long as before, with other numbers: they lie in the catalogue, which no ETag guards."""
        bucket, options = served
        sizes = set()
        for label in (1, 2):
            path = write(tmp_path / "buckets/hub/anew/0.parquet", b"")
            parquet.write_table(pa.table({"raw": [b"abc"] * 4, "label": [label] * 4}), path)
            sizes.add(path.stat().st_size)
            dataset = leat.Dataset("s3://hub/anew", **options)
            assert dataset.column("label").tolist() == [label] * 4
        assert len(sizes) == 1


class TestRefusals:
    def test_a_row_without_bytes_is_named(self, tmp_path, fresh_cache):
        values = [b"a", b"b", None, b"c"]
        for name, array in {
            "flat": pa.array(values, pa.binary()),
            "struct": pa.array([value and {"bytes": value, "path": "x"} for value in values], IMAGE),
            "inner": pa.array([{"bytes": value, "path": "x"} for value in values], IMAGE),
        }.items():
            parquet.write_table(pa.table({name: array}), tmp_path / f"{name}.parquet", row_group_size=2)
            with pytest.raises(leat.InvalidArgument, match=rf"{name}.parquet.*row 0 of row group 1.*null.*leave such rows out"):
                leat.Dataset.parquet(tmp_path / f"{name}.parquet")

    def test_a_number_that_is_missing_is_named(self, tmp_path, fresh_cache):
        parquet.write_table(pa.table({"raw": [b"a", b"b"], "label": [1, None]}), tmp_path / "x.parquet")
        with pytest.raises(leat.InvalidArgument, match="row 2.*label"):
            leat.Dataset.parquet(tmp_path / "x.parquet")
        assert len(leat.Dataset.parquet(tmp_path / "x.parquet", fields=["raw"])) == 2

    def test_columns_that_are_no_fields(self, hub):
        with pytest.raises(leat.InvalidArgument, match="boxes.*list<"):
            leat.Dataset.parquet(hub, fields=["image", "boxes"])
        with pytest.raises(leat.InvalidArgument, match="no column 'imagee'; it has image, label"):
            leat.Dataset.parquet(hub, fields=["imagee"])
        with pytest.raises(leat.InvalidArgument, match="from_manifest"):
            leat.Dataset.parquet(hub, fields=["caption"])
        with pytest.raises(leat.InvalidArgument, match="list of columns"):
            leat.Dataset.parquet(hub, fields="image")

    def test_columns_of_one_name(self, tmp_path, fresh_cache):
        table = pa.Table.from_arrays([pa.array([b"a"]), pa.array([b"b"])], ["raw", "raw"])
        parquet.write_table(table, tmp_path / "x.parquet")
        with pytest.raises(leat.InvalidArgument, match="x.parquet.*2 columns are called 'raw'"):
            leat.Dataset.parquet(tmp_path / "x.parquet")

    @pytest.mark.parametrize("missing", [True, False])
    def test_pyarrow_is_missing_or_old(self, hub, monkeypatch, missing):
        if missing:
            monkeypatch.setitem(sys.modules, "pyarrow", None)
        else:
            monkeypatch.setattr(pa, "__version__", "9.0.0")
        with pytest.raises(leat.InvalidArgument, match="pip install 'pyarrow>=.*extensions=\"parquet\""):
            leat.Dataset(hub)
        assert len(leat.Dataset(hub, extensions="parquet")) == 2

    def test_files_whose_columns_differ(self, hub):
        parquet.write_table(pa.table({"picture": [b"x"]}), hub / "train-00002.parquet")
        with pytest.raises(leat.InvalidArgument, match="train-00002.parquet has other columns than train-00000"):
            leat.Dataset.parquet(hub)

    @pytest.mark.parametrize("other", [["bee", "ant", "cat"], ["ant", "bee"]])
    def test_files_that_name_other_classes(self, tmp_path, fresh_cache, other):
        told = {b"huggingface": json.dumps({"info": {"features": {"label": {"names": other}}}}).encode()}
        parquet.write_table(table_of(0, 3), tmp_path / "0.parquet")
        parquet.write_table(table_of(0, 2).replace_schema_metadata(told), tmp_path / "1.parquet")
        said = rf"\[{', '.join(other)}\]"
        with pytest.raises(leat.InvalidArgument, match=rf"1\.parquet names .* {said}, and 0\.parquet \[ant, bee, cat\].*concat"):
            leat.Dataset.parquet(tmp_path)
        assert len(leat.Dataset.parquet(tmp_path, fields=["image"])) == 5
        both = leat.Dataset.concat([leat.Dataset.parquet(tmp_path / f"{number}.parquet") for number in range(2)])
        assert len(both) == 5

    @pytest.mark.parametrize("bare", [0, 1])
    def test_files_of_which_one_names_no_classes(self, tmp_path, fresh_cache, bare):
        tables = [table_of(0, 3), table_of(0, 2)]
        tables[bare] = tables[bare].replace_schema_metadata({})
        for number, table in enumerate(tables):
            parquet.write_table(table, tmp_path / f"{number}.parquet")
        with pytest.raises(leat.InvalidArgument, match=r"1\.parquet names .*, and 0\.parquet") as refused:
            leat.Dataset.parquet(tmp_path)
        assert f"the numbers in {bare}.parquet mean; write the names into it" in str(refused.value)
        assert "concat" not in str(refused.value)  # It refuses such files, too.
        with pytest.raises(leat.InvalidArgument):
            leat.Dataset.concat([leat.Dataset.parquet(tmp_path / f"{number}.parquet") for number in range(2)])
        assert len(leat.Dataset.parquet(tmp_path, fields=["image"])) == 5

    def test_labels_that_their_names_do_not_reach(self, tmp_path, fresh_cache):
        table = table_of(0, 3)
        table = table.set_column(1, "label", pa.array([-1, -1, -1])).replace_schema_metadata(HUB)
        parquet.write_table(table, tmp_path / "test.parquet")
        with pytest.raises(leat.InvalidArgument, match="label -1.*3 classes"):
            leat.Dataset.parquet(tmp_path / "test.parquet")

    def test_a_row_group_that_is_too_large_to_hold(self, hub, monkeypatch):
        monkeypatch.setattr("leat._formats._parquet._MOST_UNIT_BYTES", 1000)
        with pytest.raises(leat.InvalidArgument, match=r"row group 0.*smaller row groups, such as row_group_size=100"):
            leat.Dataset.parquet(hub, fields=["image"])

    def test_a_row_group_that_is_far_larger_than_its_footer_says(self, tmp_path, fresh_cache, monkeypatch):
        parquet.write_table(pa.table({"raw": [bytes(1000)] * 5000}), tmp_path / "x.parquet", use_dictionary=True)
        assert parquet.read_metadata(tmp_path / "x.parquet").row_group(0).total_byte_size < 5000
        split, seen = leat._formats._parquet._split, []
        monkeypatch.setattr("leat._formats._parquet._split", lambda chunk, *more: seen.append(len(chunk)) or split(chunk, *more))
        monkeypatch.setattr("leat._formats._parquet._MOST_UNIT_BYTES", 100_000)
        with pytest.raises(leat.InvalidArgument, match="x.parquet: row group 0.*smaller row groups"):
            leat.Dataset.parquet(tmp_path / "x.parquet")
        assert sum(seen) < 200  # The rest was not made.

    def test_texts_that_are_too_much_to_keep(self, hub, monkeypatch):
        monkeypatch.setattr("leat._formats._parquet._MOST_TABLE_BYTES", 100)
        with pytest.raises(leat.InvalidArgument, match="'caption' takes"):
            leat.Dataset.parquet(hub, fields=["image", "caption"])

    def test_a_footer_that_is_too_large(self, hub, monkeypatch):
        monkeypatch.setattr("leat._formats._parquet._MOST_FOOTER_BYTES", 100)
        with pytest.raises(leat.InvalidArgument, match="train-00000.parquet: a footer of"):
            leat.Dataset.parquet(hub)

    @pytest.mark.parametrize("keep", [0, 3, 11, 40, -1, -9, -200])
    def test_files_that_are_cut_short(self, tmp_path, fresh_cache, keep):
        folder = write_files(tmp_path / "hub", files=1)
        data = (folder / "train-00000.parquet").read_bytes()
        write(folder / "train-00000.parquet", data[:keep])
        with pytest.raises(leat.Corrupt, match=r"train-00000\.parquet"):
            leat.Dataset.parquet(folder)

    def test_a_damaged_footer_ends_no_process(self, tmp_path, fresh_cache):
        # Such as a schema that its columns' statistics do not fit.
        folder = write_files(tmp_path / "hub", rows=6, files=1)
        path = folder / "train-00000.parquet"
        good = path.read_bytes()
        footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
        said = set()
        for at in range(footer, footer + 110):
            bad = bytearray(good)
            bad[at] = 1 if good[at] == 2 else 2
            path.write_bytes(bad)
            try:
                leat.Dataset.parquet(folder, fields=("image", "label", "caption"), refresh="always")
            except leat.Error as error:
                said.add(type(error))
        assert leat.Corrupt in said

    def test_any_byte_may_be_wrong(self, tmp_path, fresh_cache):
        folder = write_files(tmp_path / "hub", rows=6, files=1)
        path = folder / "train-00000.parquet"
        good = path.read_bytes()
        rng = np.random.default_rng(0)
        caught = 0
        for _ in range(60):
            bad = bytearray(good)
            bad[rng.integers(len(good))] ^= 1 << rng.integers(8)
            path.write_bytes(bad)
            try:
                for _ in leat.Dataset.parquet(folder, fields=("image", "label"), refresh="always"):
                    pass
            except leat.Error:  # And nothing else.
                caught += 1
        assert caught > 4
