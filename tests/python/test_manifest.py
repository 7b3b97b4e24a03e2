"""Tables of which a row is a sample: CSV, JSON lines, Parquet."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import leat
from leat._formats._table._manifest import Places
from leat.ops import DecodeImage
from small_datasets import encoded, pixels, write

FIELDS = {"image": "path", "label": "class_id"}


@pytest.fixture
def photos(tmp_path):
    """photos/: six images, two masks, labels.csv whose rows are in no order."""
    folder = tmp_path / "photos"
    rows = [["path", "class_id", "mask", "width", "caption"]]
    for number in (4, 0, 5, 1, 3, 2):
        write(folder / f"images/{number}.png", encoded(pixels(number)))
        mask = ""
        if number % 3 == 0:
            mask = f"masks/{number}.png"
            write(folder / mask, encoded(pixels(number + 100)))
        rows.append([f"images/{number}.png", str(number * 10), mask, f"{number}.5",
                     f'no. "{number}", a picture'])  # fmt: skip
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    write(folder / "labels.csv", "\r\n".join(quoted).encode())
    return folder


def test_rows_are_samples_in_their_order(photos):
    dataset = leat.Dataset.from_manifest(
        photos / "labels.csv", fields=FIELDS, columns=["width", "caption"]
    )

    assert len(dataset) == 6
    assert dataset.fields == {
        "image": "bytes", "label": "int64", "width": "float64", "caption": "string",
    }  # fmt: skip
    assert dataset.key(0) == "images/4.png"
    assert dataset[1] == {
        "image": (photos / "images/0.png").read_bytes(),
        "label": 0,
        "width": 0.5,
        "caption": 'no. "0", a picture',
    }


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize("column", ["width", "class_id"])
def test_a_column_called_valid_keeps_its_numbers(photos, column, output):
    if output == "torch":
        pytest.importorskip("torch", reason="torch is not installed")
    dataset = leat.Dataset.from_manifest(photos / "labels.csv", fields={"image": "path", "valid": column})
    with leat.Loader(dataset, batch_size=6, shuffle=False, output=output, fields={"v": "valid"}) as loader:
        (batch,) = loader
    expected = [dataset[row]["valid"] for row in range(6)]
    assert batch["v"].tolist() == expected
    assert str(batch["v"].dtype).endswith("float64" if column == "width" else "int64")


def test_a_column_called_valid_is_not_taken_for_the_one_of_padding(photos):
    dataset = leat.Dataset.from_manifest(photos / "labels.csv", fields={**FIELDS, "valid": "width"})
    options = {"batch_size": 4, "shuffle": False, "drop_last": "pad", "output": "numpy"}
    for chosen in ({}, {"fields": ("label", "valid")}, {"fields": ("label",), "ids": True}):
        with pytest.raises(leat.InvalidArgument, match='drop_last="pad" makes a field "valid".*another name'):
            leat.Loader(dataset, **options, **chosen)
    with leat.Loader(dataset, **options, fields=("label",)) as loader:
        assert len([label for (labels,) in loader for label in labels]) == 8
    other = leat.Dataset.from_manifest(photos / "labels.csv", fields={**FIELDS, "good": "width"})
    with leat.Loader(other, **options, fields=("good", "valid")) as loader:
        told = [row for good, valid in loader for row in zip(good.tolist(), valid.tolist())]
    assert told[:6] == [(other[row]["good"], True) for row in range(6)]
    assert [is_own for _, is_own in told[6:]] == [False, False]


def test_a_loader_reads_all_fields(photos, fresh_cache):
    dataset = leat.Dataset.from_manifest(
        photos / "labels.csv", fields=FIELDS, columns={"size": "width", "text": "caption"}
    )

    loader = leat.Loader(
        dataset, batch_size=6, shuffle=False, output="numpy", ops=[DecodeImage(field="image")],
        fields=("image", "label", "size", "text"), batch="tuple",
    )  # fmt: skip
    images, labels, sizes, texts = next(iter(loader))

    assert labels.tolist() == [40, 0, 50, 10, 30, 20]
    assert sizes.dtype == np.float64 and sizes.tolist() == [4.5, 0.5, 5.5, 1.5, 3.5, 2.5]
    assert texts[2] == 'no. "5", a picture'
    assert np.array_equal(images[3].transpose(1, 2, 0), pixels(1))


def test_several_byte_fields_of_which_some_samples_lack_one(photos):
    dataset = leat.Dataset.from_manifest(
        photos / "labels.csv", fields={"image": "path", "mask": "mask"}
    )

    assert dataset[0]["mask"] is None
    assert dataset[1]["mask"] == (photos / "masks/0.png").read_bytes()
    assert dataset.lengths("mask").tolist()[0] == -1
    with_mask = dataset.filter(lambda of: of.has("mask"))
    batch = next(iter(leat.Loader(with_mask, batch_size=2, shuffle=False, output="numpy")))
    assert bytes(batch["mask"][1]) == (photos / "masks/3.png").read_bytes()


def test_a_manifest_in_a_bucket_is_never_listed(photos, serve, fresh_cache):
    served = serve(photos)

    def open_it() -> leat.Dataset:
        return leat.Dataset.from_manifest(
            f"{served.url}/labels.csv", fields=FIELDS, **served.options
        )

    first = open_it()
    counters = served.counters()  # Six objects, and the manifest itself.
    assert (counters["list"], counters["head"], counters["get"]) == (0, 7, 1)
    served.reset()
    again = open_it()

    assert again.digest == first.digest
    # All is in the cache. The manifest and the objects, which are few, are asked for.
    counters = served.counters()
    assert (counters["list"], counters["head"], counters["get"]) == (0, 7, 0)
    assert next(iter(leat.Loader(again, batch_size=6, shuffle=True, output="numpy")))["label"].sum() == 150


@pytest.mark.parametrize("is_bucket", [True, False])
def test_objects_that_were_written_anew_are_seen_if_they_are_few(photos, serve, fresh_cache, caplog, is_bucket):
    served = serve(photos)
    place, options = (served.url, served.options) if is_bucket else (str(photos), {})

    def read(name: str) -> list[bytes]:
        dataset = leat.Dataset.from_manifest(f"{place}/{name}", fields=FIELDS, **options)
        return [sample["image"] for sample in dataset]

    many = "".join(f"more/{i}.png,{i}\n" for i in range(17))
    write(photos / "many.csv", f"path,class_id\n{many}".encode())
    for i in range(17):
        write(photos / f"more/{i}.png", encoded(pixels(i)))
    before, before_of_many = read("labels.csv"), read("many.csv")
    changed = encoded(pixels(99))
    write(photos / "images/4.png", changed)
    write(photos / "more/16.png", changed)

    assert read("labels.csv") == [changed, *before[1:]]
    assert "written anew since the catalogue of" in caplog.text
    with pytest.raises(leat.Corrupt, match="index"):
        read("many.csv")
    many_now = leat.Dataset.from_manifest(f"{place}/many.csv", fields=FIELDS, refresh="always", **options)
    assert [sample["image"] for sample in many_now] == [*before_of_many[:-1], changed]


def test_known_sizes_ask_the_store_nothing(photos, serve, fresh_cache):
    served = serve(photos)
    rows = [{"path": f"images/{i}.png", "nbytes": (photos / f"images/{i}.png").stat().st_size}
            for i in range(6)]  # fmt: skip
    write(photos / "sized.jsonl", "\n".join(map(json.dumps, rows)).encode())

    dataset = leat.Dataset.from_manifest(
        f"{served.url}/sized.jsonl", fields={"image": "path"}, sizes={"image": "nbytes"},
        **served.options,
    )  # fmt: skip

    assert served.counters()["head"] == 1  # The manifest.
    assert dataset[5]["image"] == (photos / "images/5.png").read_bytes()


def test_paths_may_be_whole_urls_below_base(photos, serve, tmp_path):
    served = serve(photos)
    lines = "".join(f"{served.url}/images/{i}.png,{i}\n" for i in range(3))
    manifest = write(tmp_path / "local.csv", b"path,class_id\n" + lines.encode())

    dataset = leat.Dataset.from_manifest(
        manifest, base=served.url, fields=FIELDS, **served.options
    )

    assert dataset.key(2) == "images/2.png"
    assert dataset[2]["image"] == (photos / "images/2.png").read_bytes()
    elsewhere = leat.Dataset.from_manifest(manifest, fields=FIELDS, **served.options)
    assert elsewhere[2] == dataset[2]


def test_json_lines(photos):
    rows = [{"path": "images/1.png", "class_id": 7, "weight": 1}, {},
            {"path": "images/0.png", "class_id": 8, "weight": 0.5}]  # fmt: skip
    rows[1] = {"path": "images/2.png", "class_id": 9, "weight": 2, "text": "a\u2028b"}
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    write(photos / "rows.jsonl", text.encode() + b"\n\n")

    dataset = leat.Dataset.from_manifest(
        photos / "rows.jsonl", fields=FIELDS, columns=["weight"]
    )

    assert dataset.column("label").tolist() == [7, 9, 8]
    assert dataset.column("weight").tolist() == [1.0, 2.0, 0.5]


def test_parquet(photos):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow, which is not installed")
    from pyarrow import parquet

    table = pyarrow.table({"path": ["images/1.png", "images/0.png"], "class_id": [3, 4]})
    parquet.write_table(table, photos / "rows.parquet")

    dataset = leat.Dataset.from_manifest(photos / "rows.parquet", fields=FIELDS)

    assert dataset.column("label").tolist() == [3, 4]
    write(photos / "broken.parquet", (photos / "rows.parquet").read_bytes()[:-20])
    with pytest.raises(leat.Corrupt, match=r"broken\.parquet"):
        leat.Dataset.from_manifest(photos / "broken.parquet", fields=FIELDS)


def test_labels_that_are_names_count_through_classes(photos):
    write(photos / "named.csv", b"path,class_id\nimages/0.png,dog\nimages/1.png,cat\n")

    sorted_names = leat.Dataset.from_manifest(photos / "named.csv", fields=FIELDS)
    given = leat.Dataset.from_manifest(
        photos / "named.csv", fields=FIELDS, classes=["dog", "bird", "cat"]
    )

    assert sorted_names.classes == ["cat", "dog"]
    assert sorted_names.column("label").tolist() == [1, 0]
    assert given.classes == ["dog", "bird", "cat"]
    assert given.column("label").tolist() == [0, 2]
    with pytest.raises(leat.InvalidArgument, match="row 2: label 'cat' is not in classes="):
        leat.Dataset.from_manifest(photos / "named.csv", fields=FIELDS, classes=["dog"])


@pytest.mark.parametrize(
    ("texts", "kind", "found"),
    [
        ("1 2", "int64", [1, 2]),
        ("1 +2.5e3 -.5 7.", "float64", [1.0, 2500.0, -0.5, 7.0]),
        ("1 nan -inf NaN Infinity", "float64", [1.0, np.nan, -np.inf, np.nan, np.inf]),
        ("12_34 1_0", "string", ["12_34", "1_0"]),
        ("1 12_34", "string", ["1", "12_34"]),
        ("Nan INFINITY", "string", ["Nan", "INFINITY"]),
        ("١ ٢", "string", ["١", "٢"]),
        ("0x1f 1e", "string", ["0x1f", "1e"]),
    ],
)
def test_what_a_number_is_in_a_csv(photos, texts, kind, found):
    write(photos / "n.csv", "\n".join(["path,n", *(f"images/0.png,{text}" for text in texts.split())]).encode())

    dataset = leat.Dataset.from_manifest(photos / "n.csv", fields={"image": "path"}, columns=["n"])

    assert dataset.fields["n"] == kind
    np.testing.assert_array_equal(dataset.column("n"), found)


@pytest.mark.parametrize(
    ("content", "error", "match"),
    [
        (b"", leat.InvalidArgument, "no rows"),
        (b"path,class_id\n", leat.InvalidArgument, "no rows"),
        (b"path,class_id\nimages/0.png\n", leat.Corrupt, "line 2: 1 values, .* 2 columns"),
        (b'path,class_id\n"images/0.png,1\n', leat.Corrupt, r"m\.csv, line 2: "),
        (b"path,path\na,b\n", leat.Corrupt, "names a column twice"),
        (b"path,class_id\nimages/0.png,\n", leat.InvalidArgument, "row 1"),
        (b"path,label\nimages/0.png,1\n", leat.InvalidArgument, "no column 'class_id'; it has path"),
        (b"path,class_id\ngone.png,1\n", leat.NotFound, "row 1, field image: .*gone.png"),
        (b"path,class_id\n../x.png,1\n", leat.InvalidArgument, "row 1: .* does not lie below"),
        (b"path,class_id\n1,1\n", leat.InvalidArgument, "no field is a path"),
        (b"path,class_id\nimages/0.png,99999999999999999999\n", leat.InvalidArgument, "int64"),
        (b"path,class_id\n\xff,1\n", leat.Corrupt, "UTF-8 at byte 14"),
    ],
)
def test_what_cannot_be_is_said(photos, content, error, match):
    write(photos / "m.csv", content)

    with pytest.raises(error, match=match):
        leat.Dataset.from_manifest(photos / "m.csv", fields=FIELDS)


def test_broken_json_lines_name_the_line(photos):
    for content in (b'{"path": "a"}\n{"path": ', b'{"path": "a"}\n[1]', b"[" * 100_000):
        write(photos / "m.jsonl", content)
        with pytest.raises(leat.Corrupt, match=r"m\.jsonl, line [12]: "):
            leat.Dataset.from_manifest(photos / "m.jsonl", fields=FIELDS)


def test_a_manifest_of_no_known_kind(photos):
    with pytest.raises(leat.InvalidArgument, match="format="):
        leat.Dataset.from_manifest(write(photos / "labels", b"x"), fields=FIELDS)
    with pytest.raises(leat.NotFound):
        leat.Dataset.from_manifest(photos / "none.csv", fields=FIELDS)


def test_another_mapping_of_the_same_file_is_another_catalogue(photos):
    one = leat.Dataset.from_manifest(photos / "labels.csv", fields=FIELDS)
    other = leat.Dataset.from_manifest(photos / "labels.csv", fields={"image": "path"})

    assert "label" in one.fields and "label" not in other.fields


def test_one_manifest_over_several_places(photos, serve, tmp_path, monkeypatch):
    served = serve(photos)
    make = f"{served.bucket.url}/{photos.name}/images"
    write(tmp_path / "here/near.png", encoded(pixels(50)))
    write(tmp_path / "away/a b.png", encoded(pixels(51)))
    rows = ["near.png", f"{served.url}/images/0.png", f"{make}/1.png",
            str(tmp_path / "away/a b.png"), f"file://{tmp_path}/away/a b.png",
            f"{served.url}/images/2.png", str(tmp_path / "here/near.png")]  # fmt: skip
    want = [pixels(i) for i in (50, 0, 1, 51, 51, 2, 50)]
    manifest = write(
        tmp_path / "here/all.csv",
        "".join(["path,class_id\n", *(f"{row},{i}\n" for i, row in enumerate(rows))]).encode(),
    )

    dataset = leat.Dataset.from_manifest(manifest, fields=FIELDS, **served.options)

    assert dataset.key(0) == "near.png" and dataset.key(1) == "images/0.png"
    assert [sample["image"] for sample in dataset] == [encoded(each) for each in want]
    loader = leat.Loader(dataset, batch_size=7, train=False, ops=[DecodeImage(field="image")], output="numpy")
    batch = next(iter(loader))
    assert np.array_equal(batch["image"].transpose(0, 2, 3, 1), want)
    again = pickle.loads(pickle.dumps(dataset.skip(2)))
    assert again[0]["image"] == dataset[2]["image"]
    both = leat.Dataset.concat([dataset, dataset.take(2)])
    assert both[8]["image"] == dataset[1]["image"]


def test_a_manifest_from_elsewhere_names_no_files_of_this_machine(photos, serve):
    served = serve(photos)
    for path in ("file:///etc/passwd", f"file://{photos}/images/0.png"):
        write(photos / "evil.csv", f"path,class_id\n{path},1\n".encode())
        with pytest.raises(leat.InvalidArgument, match=r"row 1: file:///.* the manifest comes from elsewhere"):
            leat.Dataset.from_manifest(f"{served.url}/evil.csv", fields=FIELDS, **served.options)


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("http://host/x?signature=hush", "row 1: http://host/x has a query"),
        ("s3://bucket", "row 1: s3://bucket names no object"),
        ("gcs://bucket/x", "write gs://"),
        ("../../x.png", "row 1: .* does not lie below"),
    ],
)
def test_urls_that_cannot_be_are_said(photos, path, match):
    write(photos / "m.csv", f"path,class_id\n{path},1\n".encode())

    with pytest.raises(leat.InvalidArgument, match=match) as raised:
        leat.Dataset.from_manifest(photos / "m.csv", fields=FIELDS)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize("url, place, key", [
    ("https://h/d/a%20b.png", "https://h/d", "a b.png"),
    ("https://h/e/a%20b.png", "https://h", "e/a b.png"),
    ("s3://b/a%20b.png", "s3://b", "a%20b.png"),
    ("hf://datasets/o/n/train/0.png", "hf://datasets/o/n", "train/0.png"),
    ("hf://datasets/o/n@refs/convert/parquet/0.png", "hf://datasets/o/n@refs/convert/parquet", "0.png"),
])  # fmt: skip
def test_a_whole_url_is_an_object_of_its_place(url, place, key):
    places = Places("https://h/d", "https://h/d/m.csv")
    number, found, _ = places.find(url, 1)
    assert (places.urls[number], found) == (place, key)


@pytest.mark.parametrize("path", ["https://h/d/x.png?sig=hush", "https://h/e/x.png#hush?", "hf://datasets/o/n", "hf://datasets/o//x"])
def test_a_url_of_the_manifests_own_place_that_cannot_be_is_said(path):
    with pytest.raises(leat.InvalidArgument, match="row 3: .*(has a query|names no object)") as raised:
        Places("https://h/d", "https://h/d/m.csv").find(path, 3)
    assert "hush" not in str(raised.value)


def test_urls_below_the_manifest_are_decoded_as_others_are(tmp_path, serve):
    write(tmp_path / "data/a b.png", b"it")
    served = serve(tmp_path / "data")
    write(tmp_path / "data/m.csv", f"path,class_id\n{served.http_url}/a%20b.png,1\n".encode())
    dataset = leat.Dataset.from_manifest(f"{served.http_url}/m.csv", fields={"image": "path", "label": "class_id"})
    assert dataset[0]["image"] == b"it"


def test_too_many_places_are_refused(photos):
    rows = "".join(f"s3://bucket-{i}/x,1\n" for i in range(65))
    write(photos / "m.csv", f"path,class_id\n{rows}".encode())

    with pytest.raises(leat.InvalidArgument, match="row 65: .* more than 64 places"):
        leat.Dataset.from_manifest(photos / "m.csv", fields=FIELDS)


def test_several_manifests_one_below_the_other(photos, serve):
    for part in range(3):
        rows = "".join(f"images/{i}.png,{i}\n" for i in (2 * part, 2 * part + 1))
        write(photos / f"part-{part}.csv", f"path,class_id\n{rows}".encode())
    served = serve(photos)

    for url in (f"{served.url}/part-{{0..2}}.csv", f"{served.url}/part-*.csv",
                [f"{served.url}/part-{i}.csv" for i in range(3)]):  # fmt: skip
        dataset = leat.Dataset.from_manifest(url, fields=FIELDS, **served.options)
        assert dataset.column("label").tolist() == [0, 1, 2, 3, 4, 5]
        assert dataset[5]["image"] == encoded(pixels(5))
        assert pickle.loads(pickle.dumps(dataset)).digest == dataset.digest
    write(photos / "part-1.csv", b"path,other\nimages/0.png,1\n")
    with pytest.raises(leat.InvalidArgument, match=r"part-1\.csv has the columns path, other, and .*part-0"):
        leat.Dataset.from_manifest(f"{photos}/part-*.csv", fields=FIELDS)
    with pytest.raises(leat.InvalidArgument, match="several folders.*base="):
        leat.Dataset.from_manifest([photos / "part-0.csv", photos.parent / "x.csv"], fields=FIELDS)


def test_rows_may_be_parts_of_objects(tmp_path, serve):
    blocks = [f"value {i}".encode() * (i + 1) for i in range(9)]
    rows, at = [], 0
    for number, block in enumerate(blocks):
        rows.append({"file": "data/all.blob", "at": at, "n": len(block), "label": number})
        at += len(block)
    write(tmp_path / "parts/data/all.blob", b"".join(blocks))
    write(tmp_path / "parts/rows.jsonl", "\n".join(map(json.dumps, rows)).encode())
    served = serve(tmp_path / "parts")

    dataset = leat.Dataset.from_manifest(
        f"{served.url}/rows.jsonl", fields={"data": "file", "label": "label"},
        ranges={"data": ("at", "n")}, **served.options,
    )  # fmt: skip

    assert [sample["data"] for sample in dataset] == blocks
    assert dataset.key(1) == "data/all.blob:7"
    assert sum(len(part) for part in dataset.split(0.5, 0.5)) == 9
    loader = leat.Loader(dataset, batch_size=9, shuffle=True, output="numpy")
    batch = next(iter(loader))
    assert [blocks[i] for i in batch["label"]] == batch["data"].tolist()
    assert pickle.loads(pickle.dumps(dataset))[8]["data"] == blocks[8]
    for change, match in (({"n": -1}, "row 1: -1 is no number"), ({"n": 10**6}, "outside")):
        rows[0].update(change)
        write(tmp_path / "parts/rows.jsonl", "\n".join(map(json.dumps, rows)).encode())
        with pytest.raises(leat.InvalidArgument, match=match):
            leat.Dataset.from_manifest(tmp_path / "parts/rows.jsonl", fields={"data": "file"}, ranges={"data": ("at", "n")})


def test_digits_without_end_are_a_text(photos):
    long = "9" * 5000
    write(photos / "long.csv", f"path,id\nimages/0.png,1\nimages/1.png,{long}\n".encode())
    dataset = leat.Dataset.from_manifest(photos / "long.csv", fields={"image": "path"}, columns=["id"])
    assert [dataset[row]["id"] for row in range(2)] == ["1", long]


@pytest.mark.parametrize("row, says", [
    ({"path": "images/0.png", "text": "\ud800"}, r"bad\.jsonl, row 2: 'text' is '\\ud800', which has half of a char"),
    ({"path": "\ud800", "text": "x"}, r"bad\.jsonl, row 2: 'image' is '\\ud800', which has half of a char"),
    ({"path": "images/0.png", "text": 10**400}, r"bad\.jsonl, row 2: 'text' has a number that is too large"),
])  # fmt: skip
def test_a_value_that_is_neither_text_nor_number_names_its_row(photos, row, says):
    usual = {"path": "images/1.png", "text": 1 if isinstance(row["text"], int) else "x"}
    write(photos / "bad.jsonl", "\n".join(map(json.dumps, (usual, row))).encode())
    with pytest.raises((leat.Corrupt, leat.InvalidArgument), match=says):
        leat.Dataset.from_manifest(photos / "bad.jsonl", fields={"image": "path"}, columns=["text"])


@pytest.mark.parametrize("label", [-1, 7, 2, 1.5e9])
def test_numbers_that_classes_do_not_name_are_no_labels(photos, label):
    write(photos / "numbered.csv", f"path,label\nimages/0.png,1\nimages/1.png,{label}\n".encode())
    fields = {"image": "path", "label": "label"}
    with pytest.raises(leat.InvalidArgument, match=r"numbered\.csv, row 2: label .*classes= names 2; name all"):
        leat.Dataset.from_manifest(photos / "numbered.csv", fields=fields, classes=["cat", "dog"])
    assert len(leat.Dataset.from_manifest(photos / "numbered.csv", fields=fields)) == 2


@pytest.mark.parametrize("is_bucket", [False, True])
def test_an_object_of_another_size_than_the_table_says_is_refused(photos, serve, fresh_cache, is_bucket):
    write(photos / "a.bin", b"abc")
    write(photos / "sized.csv", b"path,size\na.bin,2\n")
    served = serve(photos)
    url, options = (served.url, served.options) if is_bucket else (photos, {})
    dataset = leat.Dataset.from_manifest(f"{url}/sized.csv", fields={"x": "path"}, sizes={"x": "size"}, **options)
    with pytest.raises(leat.Corrupt, match=r"a\.bin.*it has 3 bytes, not 2\); index again, or correct the sizes"):
        dataset[0]


def test_two_sizes_of_one_object_are_refused(photos):
    write(photos / "a.bin", b"abcdef")
    write(photos / "sized.csv", b"path,size\na.bin,3\na.bin,6\n")
    with pytest.raises(leat.InvalidArgument, match="row 2, field x: 'a.bin' has 6 bytes, and had 3"):
        leat.Dataset.from_manifest(photos / "sized.csv", fields={"x": "path"}, sizes={"x": "size"})
