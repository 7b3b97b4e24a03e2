"""A table of samples is read once, in batches; afterwards its kept catalogue is all that is opened."""

from __future__ import annotations

import gc
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import weakref

import pytest

import leat
from leat import _native
from leat._formats._table import _batches as _table_batches, _columns as _table_columns, _files as _table_files
from leat._storage import checked_storage, native_storage
from small_datasets import write

FIELDS = {"image": "path", "label": "kind"}
NAMES = ["dog", "ant", "cat", "ant", "bee", "dog", "cat", "ant", "bee"]
KEYS = [f"images/{number}.png" for number in (4, 0, 5, 1, 3, 2, 0, 4, 6)]
NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6, 5]


def old(path: pathlib.Path) -> pathlib.Path:
    """Waits until the file's times tell its versions apart."""
    while time.time() - path.stat().st_ctime < 2.0:
        time.sleep(0.05)
    return path


@pytest.fixture
def settled(monkeypatch):
    """Files of this machine are old enough at once."""
    monkeypatch.setattr(_table_files, "_SETTLED_SECONDS", 0.0)


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(_table_batches, "ROWS_AT_ONCE", 2)


@pytest.fixture
def folder(tmp_path, fresh_cache):
    """Seven objects, and tables of nine rows that name them: table.csv, .jsonl, .parquet."""
    folder = tmp_path / "data"
    for number in range(7):
        write(folder / f"images/{number}.png", b"x" * (number + 1))
    rows = [
        {"path": key, "kind": kind, "number": number, "half": number / 2, "text": f"no. {number}",
         "size": 1 + int(key[7])}
        for key, kind, number in zip(KEYS, NAMES, NUMBERS)
    ]  # fmt: skip
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    write(folder / "table.csv", "\n".join(lines).encode())
    write(folder / "table.tsv", "\n".join(lines).replace(",", "\t").encode())
    write(folder / "table.jsonl", "\n".join(map(json.dumps, rows)).encode())
    return folder


def write_parquet(folder: pathlib.Path) -> pathlib.Path:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, which is not installed")
    from pyarrow import parquet

    rows = [json.loads(line) for line in (folder / "table.jsonl").read_text().splitlines()]
    table = pyarrow.Table.from_pylist(rows)
    kinds = table.column("kind").dictionary_encode()
    table = table.set_column(table.column_names.index("kind"), "kind", kinds)
    parquet.write_table(table, folder / "table.parquet", row_group_size=4)
    return folder / "table.parquet"


def whole(folder: pathlib.Path, sizes: bool) -> str:
    """The digest of the catalogue of the same rows, made of lists."""
    classes = sorted(set(NAMES))
    columns = [
        ("image", "bytes", KEYS, [1 + int(key[7]) for key in KEYS] if sizes else None, None, None),
        ("label", "int64", [classes.index(name) for name in NAMES], None, None, None),
        ("number", "int64", NUMBERS, None, None, None),
        ("half", "float64", [number / 2 for number in NUMBERS], None, None, None),
        ("text", "string", [f"no. {number}" for number in NUMBERS], None, None, None),
    ]
    return _native.Dataset.from_rows(
        places=[str(folder)], store=native_storage(checked_storage(None)), rows=len(KEYS), names=[], columns=columns,
        classes=classes, description="", refresh="always",
    ).digest  # fmt: skip


@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4, 1 << 16])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_batches_make_the_catalogue_that_whole_columns_make(folder, monkeypatch, kind, rows, sizes):
    monkeypatch.setattr(_table_batches, "ROWS_AT_ONCE", rows)
    if kind == "parquet":
        write_parquet(folder)

    dataset = leat.Dataset.from_manifest(
        folder / f"table.{kind}", fields=FIELDS, columns=["number", "half", "text"],
        sizes={"image": "size"} if sizes else None, refresh="always",
    )  # fmt: skip

    assert dataset.classes == ["ant", "bee", "cat", "dog"]
    assert dataset.digest == whole(folder, sizes)
    assert [dataset.key(row) for row in range(9)] == KEYS


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_opening_again_reads_nothing_of_the_table(folder, serve, kind):
    lines = []
    for number, line in enumerate((folder / "table.jsonl").read_text().splitlines() * 2):
        row = {**json.loads(line), "path": f"more/{number}.png"}
        write(folder / row["path"], b"x" * (number + 1))
        lines.append(json.dumps(row))
    write(folder / "table.jsonl", "\n".join(lines).encode())
    rows = [json.loads(line) for line in lines]
    table = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    write(folder / "table.csv", "\n".join(table).encode())
    if kind == "parquet":
        write_parquet(folder)
    served = serve(folder)
    count = len(rows)  # More than are asked for one by one.

    def opened(**options) -> leat.Dataset:
        served.reset()
        return leat.Dataset.from_manifest(f"{served.url}/table.{kind}", fields=FIELDS, **options, **served.options)

    first = opened()
    asked = served.counters()
    assert (asked["list"], asked["head"], asked["get"]) == (0, 1 + count, 1)
    again = opened()
    asked = served.counters()
    # One HEAD of the table; one byte of an object says that the objects may be read.
    assert (asked["list"], asked["head"], asked["get"], asked["bytes"]) == (0, 1, 1, 1)
    assert (again.digest, again.classes) == (first.digest, ["ant", "bee", "cat", "dog"])
    assert again[3] == {"image": b"xxxx", "label": 0}
    opened(refresh="always")
    assert served.counters()["head"] == 1 + count
    opened(classes=["dog", "cat", "bee", "ant"])
    assert served.counters()["head"] == 1 + count


def test_opening_again_asks_for_each_of_few_objects(folder, serve):
    served = serve(folder)

    def opened() -> leat.Dataset:
        served.reset()
        return leat.Dataset.from_manifest(f"{served.url}/table.csv", fields=FIELDS, **served.options)

    digests = {opened().digest for _ in range(2)}
    asked = served.counters()
    assert len(digests) == 1
    assert (asked["list"], asked["head"], asked["get"]) == (0, 1 + 7, 0)


def test_a_table_of_this_machine_is_not_read_again_once_it_is_old(folder, monkeypatch):
    table = old(folder / "table.csv")
    first = leat.Dataset.from_manifest(table, fields=FIELDS)

    def read(*_: object) -> bytes:
        raise AssertionError("it was read")

    monkeypatch.setattr(_table_files.TableFile, "read", read)
    again = leat.Dataset.from_manifest(table, fields=FIELDS)
    assert again.digest == first.digest and again[0]["image"] == b"x" * 5
    os.utime(table)
    with pytest.raises(AssertionError, match="it was read"):
        leat.Dataset.from_manifest(table, fields=FIELDS)


def test_a_table_that_was_changed_is_seen(folder, serve, settled):
    served = serve(folder)
    table = folder / "table.jsonl"
    before = table.stat()
    text = table.read_bytes()

    def labels(url: str) -> list[int]:
        dataset = leat.Dataset.from_manifest(url, fields={"image": "path", "label": "number"}, **served.options)
        return dataset.column("label").tolist()

    for url in (str(table), f"{served.url}/table.jsonl", f"{served.url}/table.json*"):
        assert labels(url) == NUMBERS
        # The size and the time of writing stay as they were.
        table.write_bytes(text.replace(b'"number": 3', b'"number": 8'))
        os.utime(table, ns=(before.st_atime_ns, before.st_mtime_ns if url == str(table) else before.st_mtime_ns + 1))
        assert labels(url) == [8, *NUMBERS[1:]]
        table.write_bytes(text)


def test_a_file_that_is_written_twice_in_a_moment_is_read_twice(folder):
    table = folder / "table.jsonl"
    for number in range(8):
        numbers = [b'"number": 3', b'"number": 8']
        table.write_bytes(table.read_bytes().replace(numbers[1 - number % 2], numbers[number % 2]))
        os.utime(table, ns=(0, time.time_ns() // 10**9 * 10**9))  # A file system whose clock ticks once a second.
        dataset = leat.Dataset.from_manifest(table, fields={"image": "path", "label": "number"})
        assert dataset[0]["label"] == (8 if number % 2 else 3)


class _Plain(http.server.SimpleHTTPRequestHandler):
    """A server without ETags, and without ranges."""

    gets: list[str] = []

    def do_GET(self) -> None:
        self.gets.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_without_etags_is_asked_for_the_whole_table(folder, monkeypatch):
    monkeypatch.chdir(folder)
    _Plain.gets.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Plain) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/table.csv"
        for kind in (b"dog", b"ox!"):
            write(folder / "table.csv", (folder / "table.csv").read_bytes().replace(b"dog", kind))
            os.utime(folder / "table.csv", (0, 0))
            dataset = leat.Dataset.from_manifest(url, fields=FIELDS, sizes={"image": "size"})
            assert dataset.classes[-1] == kind.decode()
        assert _Plain.gets.count("/table.csv") == 2
        server.shutdown()


def test_no_more_than_two_batches_are_in_memory(tmp_path, monkeypatch, fresh_cache):
    monkeypatch.setattr(_table_batches, "ROWS_AT_ONCE", 100)
    rows = 3000
    write(tmp_path / "t.csv", b"path,size\n" + b"".join(b"%d.bin,7\n" % row for row in range(rows)))
    alive: list[int] = []
    every: weakref.WeakSet = weakref.WeakSet()
    made = _table_batches.Values.__init__

    def watched(self: _table_batches.Values, values: list) -> None:
        made(self, values)
        every.add(self)
        gc.collect(0)
        alive.append(len(every))

    monkeypatch.setattr(_table_batches.Values, "__init__", watched)
    dataset = leat.Dataset.from_manifest(tmp_path / "t.csv", fields={"data": "path"}, sizes={"data": "size"},
                                         format="csv", base=tmp_path)  # fmt: skip

    assert len(dataset) == rows and len(alive) == 2 * rows / 100
    assert max(alive) <= 4


def test_of_a_large_parquet_file_only_what_is_wanted_is_read(folder, serve, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, which is not installed")
    from pyarrow import parquet

    for module in (_table_files, _table_batches):
        monkeypatch.setattr(module, "PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(_table_batches, "_COLUMN_BYTES", 1 << 12)
    rows = 5000
    table = pyarrow.table({
        "path": [f"images/{row % 7}.png" for row in range(rows)], "size": [1 + row % 7 for row in range(rows)],
        "caption": [os.urandom(50).hex() for _ in range(rows)],
    })  # fmt: skip
    parquet.write_table(table, folder / "large.parquet", row_group_size=1000)
    served = serve(folder)

    dataset = leat.Dataset.from_manifest(
        f"{served.url}/large.parquet", fields={"image": "path"}, sizes={"image": "size"}, **served.options)

    assert len(dataset) == rows and dataset[4999]["image"] == b"xx"
    size = (folder / "large.parquet").stat().st_size
    assert size > 300_000 and 0 < served.counters()["bytes"] < size / 4


def table_of(kind: str, values: list) -> bytes:
    if kind == "csv":
        return "\n".join(["path,kind,value", *(f"images/0.png,a,{value}" for value in values)]).encode()
    return "\n".join(json.dumps({"path": "images/0.png", "kind": "a", "value": value}) for value in values).encode()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_column_may_show_late_what_it_is(folder, small_batches, kind):
    def column(values: list) -> list:
        write(folder / f"late.{kind}", table_of(kind, values))
        dataset = leat.Dataset.from_manifest(folder / f"late.{kind}", fields=FIELDS, columns=["value"])
        return list(dataset.column("value"))

    assert column([1, 2, 3, 4, 5.5]) == [1, 2, 3, 4, 5.5]
    assert column([2**60 + 1, 1, 2, 3]) == [2**60 + 1, 1, 2, 3]
    assert column([1, 2**70, 2, 3, 4, 0.5]) == [1, 2.0**70, 2, 3, 4, 0.5]
    with pytest.raises(leat.InvalidArgument, match="'value' has numbers that do not fit into int64"):
        column([1, 2, 3, 2**70])
    if kind == "csv":
        assert column(["01", "02", "03", "4.0", "x"]) == ["01", "02", "03", "4.0", "x"]
        assert column(["x", "02", "03", "04"]) == ["x", "02", "03", "04"]
    else:
        with pytest.raises(leat.InvalidArgument, match="'value' is neither all numbers nor all texts, but int, str"):
            column([1, 2, 3, "x"])
        with pytest.raises(leat.InvalidArgument, match="row 4: no value for 'value'"):
            column([1, 2, 3, None])


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ({"path": "", "kind": "a"}, None),
        ({"path": "images/1.png", "kind": ""}, "row 4: no label"),
        ({"path": "../x.png", "kind": "a"}, "row 4: ../x.png does not lie below"),
        ({"path": 7, "kind": "a"}, "'image' is neither all numbers nor all texts, but int, str"),
        ({"path": "images/1.png", "kind": "a", "size": -1}, "row 4: -1 is no number of bytes"),
    ],
)
def test_errors_name_the_row_of_the_table(folder, small_batches, rows, match):
    good = {"path": "images/0.png", "kind": "a", "size": 1}
    write(folder / "m.jsonl", "\n".join(json.dumps(row) for row in [good, good, good, {**good, **rows}]).encode())

    def opened() -> leat.Dataset:
        return leat.Dataset.from_manifest(folder / "m.jsonl", fields=FIELDS, sizes={"image": "size"})

    if match is None:
        assert opened()[3]["image"] is None
        return
    with pytest.raises(leat.InvalidArgument, match=match):
        opened()


def test_lines_end_as_they_do_and_bytes_are_counted(folder, monkeypatch):
    monkeypatch.setattr(_table_batches, "_TEXT_BYTES", 5)
    text = "path,kind\r\nimages/0.png,\u00e9t\u00e9\r\nimages/1.png,\"a\r\nb\"\rimages/2.png,\U0001f600\r\n"
    write(folder / "t.csv", b"\xef\xbb\xbf" + text.encode())

    dataset = leat.Dataset.from_manifest(folder / "t.csv", fields={"image": "path"}, columns=["kind"])

    assert dataset.column("kind") == ["\u00e9t\u00e9", "a\r\nb", "\U0001f600"]
    write(folder / "t.csv", b"\xef\xbb\xbf" + text.encode() + b"images/0.png,\xc3(\n")
    with pytest.raises(leat.Corrupt, match=f"not UTF-8 at byte {3 + len(text.encode()) + 13};"):
        leat.Dataset.from_manifest(folder / "t.csv", fields={"image": "path"})
    monkeypatch.setattr(_table_batches, "_MOST_LINE_CHARS", 20)
    with pytest.raises(leat.Corrupt, match="a line of more than"):
        leat.Dataset.from_manifest(write(folder / "u.csv", b"path\n" + b"x" * 50), fields={"image": "path"})


def test_several_places_are_noted_with_the_catalogue(folder, tmp_path, serve, fresh_cache, settled):
    served = serve(folder)
    away = write(tmp_path / "away/b.png", b"far")
    there = [str(write(folder / f"more/{number}.png", b"x").relative_to(folder)) for number in range(17)]
    paths = ["near.png", *(f"{served.url}/{path}" for path in there), away]  # More than are asked for one by one.
    table = write(tmp_path / "here/t.csv", "\n".join(["path", *map(str, paths), ""]).encode())
    write(tmp_path / "here/near.png", b"near")
    expected = [b"near", *[b"x"] * 17, b"far"]

    def values() -> list[bytes]:
        dataset = leat.Dataset.from_manifest(table, fields={"image": "path"}, **served.options)
        return [sample["image"] for sample in dataset]

    assert values() == expected
    served.reset()
    assert values() == expected
    assert served.counters()["head"] == 0
    (note,) = fresh_cache.glob("catalogues/*.places")
    for damage in (b"", b"leat places 1\n3 abc\n", note.read_bytes()[:-1]):
        note.write_bytes(damage)
        served.reset()
        assert values() == expected
        assert served.counters()["head"] == 17
    note.unlink()
    assert values() == expected


def test_one_url_at_another_endpoint_is_another_place(tmp_path, monkeypatch, fresh_cache, settled):
    table = write(tmp_path / "t.csv", b"path\ns3://data/1.bin\n")
    for side in ("left", "right"):
        write(tmp_path / side / "data/1.bin", side.encode())
    with leat.testing.Bucket(tmp_path / "left", latency="0") as left, leat.testing.Bucket(
        tmp_path / "right", latency="0"
    ) as right:
        for side, bucket in (("left", left), ("right", right), ("left", left)):
            for name, value in bucket.env().items():
                monkeypatch.setenv(name, value)
            dataset = leat.Dataset.from_manifest(table, fields={"data": "path"})
            assert dataset[0]["data"] == side.encode()


def test_paths_are_found_by_rules_as_they_are_without(folder, monkeypatch):
    here = str(folder)
    paths = ["images/0.png", "./images/1.png", "images//2.png", "images/../images/3.png", f"{here}/images/4.png",
             f"{here}/./images/5.png", f"file://{here}/images/6.png", f"file://{here}/images/../images/0.png",
             str(write(folder.parent / "away/a.png", b"a")), f"file://{folder.parent}/away/a.png",
             str(write(folder.parent / "datas/b.png", b"b")), f"{here}/images/0.png"]  # fmt: skip
    for order in (paths, paths[::-1], [*paths, *paths], [*paths[8:], *paths]):
        table = write(folder / "t.csv", "\n".join(["path", *order]).encode())
        with_rules = leat.Dataset.from_manifest(table, fields={"image": "path"}, refresh="always")
        find = _table_columns.Places.find
        with monkeypatch.context() as patched:
            patched.setattr(_table_columns.Places, "find", lambda self, path, row: (*find(self, path, row)[:2], None))
            without = leat.Dataset.from_manifest(table, fields={"image": "path"}, refresh="always")
        assert with_rules.digest == without.digest
        assert [sample["image"] for sample in with_rules] == [sample["image"] for sample in without]


def test_ranks_of_a_node_read_the_table_once(folder, serve, fresh_cache):
    served = serve(folder)
    code = (
        "import sys, leat; print(leat.Dataset.from_manifest(sys.argv[1], "
        "fields={'image': 'path', 'label': 'kind'}, sizes={'image': 'size'}).digest)"
    )
    environment = {**os.environ, "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"{served.bucket.url}/{folder.name}/table.csv"],
            env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}, stdout=subprocess.PIPE, text=True,
        )
        for rank in range(3)
    ]  # fmt: skip
    digests = {rank.communicate(timeout=60)[0] for rank in ranks}

    assert len(digests) == 1 and digests != {""}
    asked = served.counters()
    table = (folder / "table.csv").stat().st_size
    assert asked["head"] == 3 and table <= asked["bytes"] <= table + 3


def test_reading_stops_when_it_is_asked_to(folder):
    files = _table_files.files_of(folder / "table.csv", native_storage(checked_storage(None)), checked_storage(None))
    plan = _table_columns.Plan({"image": "path"}, {}, {}, {}, None)
    reader = _table_columns.TableReader(files, None, plan, str(folder), "table.csv")

    with pytest.raises(leat.Cancelled, match=r"reading table\.csv was stopped"):
        reader.read(lambda: True)
