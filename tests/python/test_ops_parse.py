"""Ops that read no image: numbers, texts, JSON, arrays; WebDataset's fields."""

from __future__ import annotations

import io
import json
import subprocess

import numpy as np
import pytest

import leat
from leat import errors
from leat.ops import (
    Chain,
    DecodeImage,
    LoadNpy,
    ParseFloat,
    ParseInt,
    ParseJson,
    ParseText,
    Resize,
)
from small_datasets import encoded, pixels, tar_of, write

PLAIN = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def npy(array, **options) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


# --- one value at a time ------------------------------------------------------


def test_whole_numbers_are_pythons():
    for text in (b"0", b"281\n", b" -7 ", b"+12", b"9223372036854775807"):
        got = Chain([ParseInt()])(text)
        assert got.dtype == np.int64 and got.shape == () and got == int(text)
    assert Chain([ParseInt(dtype=np.uint8)])(b"255").dtype == np.uint8


@pytest.mark.parametrize("text", [b"", b"cat", b"1.0", b"1_000", b"0x1", b"1 2"])
def test_what_is_no_whole_number_is_shown(text):
    with pytest.raises(errors.Corrupt, match='data: ".*" is no whole number'):
        Chain([ParseInt()])(text)


def test_numbers_that_do_not_fit_their_type():
    with pytest.raises(errors.InvalidArgument, match="256 is no uint8; choose another"):
        Chain([ParseInt(dtype="uint8")])(b"256")
    with pytest.raises(errors.InvalidArgument, match="-1 is no uint64"):
        Chain([ParseInt(dtype="uint64")])(b"-1")
    with pytest.raises(errors.Corrupt, match="is beyond uint64"):
        Chain([ParseInt(dtype="uint64")])(b"18446744073709551616")
    for number in (0, 2**63 - 1, 2**63, 2**64 - 1):
        assert int(Chain([ParseInt(dtype="uint64")])(b"%d" % number)) == number
    with pytest.raises(errors.InvalidArgument, match="2.5 is no int32"):
        Chain([ParseJson(dtype="int32")])(b"2.5")
    assert Chain([ParseJson(dtype="int32")])(b"2.0") == 2
    with pytest.raises(errors.InvalidArgument, match="is no int64"):
        Chain([ParseJson(dtype="int64")])(b"9.3e18")
    for op in (ParseFloat(dtype="float32"), ParseJson(dtype="float32")):
        with pytest.raises(errors.InvalidArgument, match=r"1e\+300 is no float32"):
            Chain([op])(b"1e300")
    assert Chain([ParseFloat(dtype="float32")])(b"-inf") == -np.inf


def test_real_numbers_are_pythons():
    for text in (b"0.1", b"-1.5e3\n", b"7", b"inf", b"1e-300", b"3.4028235e38", b"1e-400", b"-1e-400"):
        got = Chain([ParseFloat()])(text)
        assert got.dtype == np.float64 and got == float(text) and np.signbit(got) == np.signbit(float(text))
        with np.errstate(over="ignore"):
            assert Chain([ParseFloat(dtype="float32")])(text) == np.float32(float(text))
    assert np.isnan(Chain([ParseFloat()])(b"nan"))


def test_texts_are_checked_to_be_utf8():
    text = "naïve 🐈 \0 text\n"
    assert Chain([ParseText()])(text.encode()) == text
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"abc\xe2\x82"):
        with pytest.raises(UnicodeDecodeError):
            bad.decode()
        with pytest.raises(errors.Corrupt, match="no UTF-8 from byte"):
            Chain([ParseText()])(bad)


DOCUMENT = {
    "id": 7, "name": "a\n🐈", "score": 0.25, "good": True, "none": None,
    "a": {"b": [[1, 2], [3, 4.5]], "b.c": [5, 6]},
    "ids": [3, 1, 2], "words": ["x"], "empty": [], "big": 2**63,
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "dtype"),
    [
        ("id", "int64"), ("score", "float64"), ("good", "bool"), ("ids", "int64"),
        ("ids[2]", "int64"), ("a.b", "float64"), ("a.b[1]", "float64"),
        ('a["b.c"]', "int64"),
    ],
)  # fmt: skip
def test_json_numbers_are_what_numpy_makes_of_them(path, dtype):
    expected = eval("d" + "".join(f"[{json.dumps(s)}]" for s in steps(path)), {"d": DOCUMENT})
    got = Chain([ParseJson(path)])(json.dumps(DOCUMENT).encode())
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.asarray(expected))
    as_float = Chain([ParseJson(path, dtype="float32")])(json.dumps(DOCUMENT).encode())
    np.testing.assert_array_equal(as_float, np.asarray(expected, np.float32))


def steps(path: str) -> list[str | int]:
    return {
        "ids[2]": ["ids", 2], "a.b": ["a", "b"], "a.b[1]": ["a", "b", 1],
        'a["b.c"]': ["a", "b.c"],
    }.get(path, [path])  # fmt: skip


def test_json_texts():
    document = json.dumps(DOCUMENT).encode()
    assert Chain([ParseJson("name")])(document) == DOCUMENT["name"]
    assert Chain([ParseJson()])(b'"whole"') == "whole"
    with pytest.raises(errors.Corrupt, match="is a text and no float64"):
        Chain([ParseJson("name", dtype=float)])(document)
    with pytest.raises(errors.Corrupt, match="dtype=.str. says"):
        Chain([ParseJson("id", dtype=str)])(document)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("a", "a is an object; say which"), ("none", "none is null"),
        ("words", "array of texts"), ("big", "beyond int64"), (None, "is an object"),
    ],
)  # fmt: skip
def test_json_that_is_no_array_says_why(path, what):
    with pytest.raises(errors.Corrupt, match=what):
        Chain([ParseJson(path)])(json.dumps(DOCUMENT).encode())


def test_json_that_is_not_there_or_no_json():
    with pytest.raises(errors.NotFound, match=r"data: the document has no a\.x"):
        Chain([ParseJson("a.x")])(json.dumps(DOCUMENT).encode())
    for bad in (b"", b"{", b"[1,]", b"NaN", b'"\xff"', b"[" * 100_000):
        with pytest.raises(errors.Corrupt):
            Chain([ParseJson()])(bad)


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_is_what_numpy_loads(dtype, version):
    rng = np.random.default_rng(1)
    for shape in ((), (5,), (2, 3), (0, 4), (1, 1, 2, 1)):
        array = (rng.normal(0, 50, shape) > 0 if dtype == "bool" else rng.integers(0, 99, shape))
        array = np.asarray(array).astype(dtype)
        out = io.BytesIO()
        np.lib.format.write_array(out, array, version=version)
        got = Chain([LoadNpy()])(out.getvalue())
        assert got.dtype == array.dtype and got.shape == shape
        np.testing.assert_array_equal(got, array)


def test_npy_that_is_not_taken_says_what_to_save():
    for array, what in (
        (np.asfortranarray(np.ones((2, 3))), "ascontiguousarray"),
        (np.ones(3, ">f4"), r'astype\("<f4"\)'),
        (np.array([{}, 1], object), "Python objects"),
        (np.array(["a"]), "is none of"),
        (np.zeros(2, "M8[ns]"), "is none of"),
        (np.zeros(2, [("x", "f4")]), "structures"),
    ):
        with pytest.raises(errors.InvalidArgument, match=what):
            Chain([LoadNpy()])(npy(array))


def test_npy_that_is_damaged_is_corrupt():
    whole = npy(np.arange(10))
    for size in (0, 5, 9, 50, len(whole) - 1):
        with pytest.raises(errors.Corrupt):
            Chain([LoadNpy()])(whole[:size])
    with pytest.raises(errors.Corrupt, match="follow the array"):
        Chain([LoadNpy()])(whole + whole)
    bad = bytearray(npy(np.array([True, False])))
    bad[-1] = 7
    with pytest.raises(errors.Corrupt, match="neither 0 nor 1"):
        Chain([LoadNpy()])(bytes(bad))


# --- what cannot be written ---------------------------------------------------


def test_ops_say_what_is_wrong_with_their_arguments():
    with pytest.raises(errors.InvalidArgument, match="dtype='float16' must be one of"):
        ParseFloat(dtype=np.float16)
    with pytest.raises(errors.InvalidArgument, match="path=3 must be"):
        ParseJson(3)
    with pytest.raises(errors.InvalidArgument, match=r'path="a..b" is no path at "\.\.b"'):
        Chain([ParseJson("a..b")])
    with pytest.raises(errors.InvalidArgument, match="needs an image: put decode_image"):
        Chain([ParseInt(), Resize(8)])
    with pytest.raises(errors.InvalidArgument, match="'data' is what load_npy made"):
        Chain([LoadNpy(), Resize(8, field="data")])
    with pytest.raises(errors.InvalidArgument, match="exactly one op that reads bytes"):
        Chain([ParseInt("a"), ParseText("b")])


def test_ops_are_values():
    assert ParseJson("a", dtype=int) == ParseJson("a", dtype="int64")
    assert repr(ParseJson("a.b", to="x")) == "ParseJson(path='a.b', ragged=False, to='x')"
    assert len({ParseInt(), ParseInt("cls"), ParseInt()}) == 2


# --- batches ------------------------------------------------------------------


def sample(number: int) -> dict[str, bytes]:
    """The members of one sample, as a WebDataset writer makes them."""
    return {
        "jpg": encoded(pixels(number), "PNG"),
        "cls": str(number * 3).encode(),
        "json": json.dumps(
            {
                "score": number / 4,
                "name": f"é{number}",
                "boxes": [[number, i, 2, 3] for i in range(number % 3)],
            }
        ).encode(),
        "npy": npy(np.full((2, 3), number, np.float32)),
        "txt": f"text {number}\n".encode(),
        "flt": f"{number}.5".encode(),
    }


SAMPLES = 24


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("webdataset")
    for shard in range(2):
        members = []
        for number in range(shard * 12, shard * 12 + 12):
            for extension, data in sample(number).items():
                members.append((f"{number:04}.{extension}", data))
        write(folder / f"{shard:03}.tar", tar_of(members))
    return folder


OPS = [
    DecodeImage(),
    ParseInt(),
    ParseJson("score", to="score"),
    ParseJson("name", to="name"),
    ParseJson("boxes", to="boxes", ragged=True),
    LoadNpy(),
    ParseText(),
    ParseFloat("flt", to="float"),
]


def check(batch) -> None:
    index = batch["index"]
    np.testing.assert_array_equal(batch["cls"], index * 3)
    assert batch["cls"].dtype == np.int64
    np.testing.assert_array_equal(batch["score"], index / 4)
    np.testing.assert_array_equal(batch["float"], index + 0.5)
    assert batch["name"] == [f"é{i}" for i in index]
    assert batch["txt"] == [f"text {i}\n" for i in index]
    assert batch["npy"].dtype == np.float32
    np.testing.assert_array_equal(batch["npy"][:, 1, 2], index)
    boxes = batch["boxes"]
    assert isinstance(boxes, leat.Ragged) and boxes.values.shape[1] == 4
    expected = [[[i, k, 2, 3] for k in range(i % 3)] for i in index]
    assert boxes.tolist() == expected
    assert boxes.pad(2).shape == (len(index), 2, 4)
    for row, i in enumerate(index):
        np.testing.assert_array_equal(batch["image"][row], pixels(i).transpose(2, 0, 1))


@pytest.mark.parametrize("shuffle", [True, False, "full"])
def test_a_webdataset_comes_as_arrays(shards, shuffle):
    with leat.Loader(shards, global_batch_size=7, shuffle=shuffle, output="numpy", drop_last=False,
                     ops=OPS, ids=True, seed=3) as loader:  # fmt: skip
        seen = []
        for batch in loader:
            check(batch)
            seen += batch["index"].tolist()
        assert sorted(seen) == list(range(SAMPLES))
        assert list(batch) == [
            "image", "cls", "score", "name", "boxes", "npy", "txt", "float", "index", "key"
        ]  # fmt: skip


def test_hashes_are_of_what_was_delivered_and_of_nothing_else(shards):
    from leat import _native

    with leat.Loader(shards, global_batch_size=5, shuffle=True, output="numpy", drop_last=False, ops=OPS, ids=True) as loader:
        total = 0
        for batch in loader:
            for row, i in enumerate(batch["index"].tolist()):
                fields = []
                for name, value in batch.items():
                    if name not in ("index", "key"):
                        one = value[row]
                        fields.append((name, one.encode() if isinstance(one, str) else one))
                total += _native.hash_of_sample(0, i, fields)
        assert loader.stats()[0]["content_hash"] == f"{total % 2**128:032x}"


def test_two_ops_on_one_field_read_it_once(shards, serve):
    ops = [ParseJson("score", to="a"), ParseJson("name", to="b"), ParseJson("score", to="c")]
    served = serve(shards)
    with served.loader(global_batch_size=4, shuffle="full", fields=["a", "b", "c"],
                       ops=ops, epochs=1) as loader:  # fmt: skip
        batches = list(loader)
        epoch = loader.stats()[0]
    assert all((b["a"] == b["c"]).all() for b in batches)
    assert epoch["requests"]["get"] == SAMPLES
    assert epoch["bytes_read"] == sum(len(sample(i)["json"]) for i in range(SAMPLES))


def test_output_torch_keeps_texts_and_ragged(shards):
    torch = pytest.importorskip("torch")
    with leat.Loader(shards, global_batch_size=4, shuffle=True, ops=OPS, output="torch") as loader:
        batch = next(iter(loader))
    assert batch["cls"].dtype == torch.int64 and batch["score"].dtype == torch.float64
    assert isinstance(batch["txt"], list)
    assert batch["boxes"].values.dtype == torch.int64
    assert batch["boxes"].to_nested().shape[0] == 4


def test_a_peek_is_a_copy_of_values_too(shards):
    with leat.Loader(shards, global_batch_size=4, shuffle=True, output="numpy", ops=OPS, ids=True) as loader:
        peeked = loader.peek()
        peeked["boxes"].values[:] = -1
        peeked["txt"][0] = "changed"
        batch = next(iter(loader))
    check(batch)


def objects(tmp_path, contents: list[bytes]):
    """A folder of its own of these objects: 000.bin and so on."""
    folder = tmp_path / f"objects-{len(list(tmp_path.iterdir()))}"
    for number, data in enumerate(contents):
        write(folder / f"{number:03}.bin", data)
    return folder


def first(folder, ops, **options):
    options = {"global_batch_size": 4, "shuffle": False, "drop_last": False, "output": "numpy", **options}
    with leat.Loader(folder, ops=ops, **options) as loader:
        return [batch["data"] for batch in loader]


def test_arrays_of_unequal_shape_name_both_keys(tmp_path):
    folder = objects(tmp_path, [npy(np.zeros(n, np.int16)) for n in (3, 3, 2, 3)])
    with pytest.raises(leat.InvalidArgument) as caught:
        first(folder, [LoadNpy()])
    message = str(caught.value)
    assert '002.bin": its shape is (2), but that of "000.bin" is (3)' in message
    assert "leat.ops.LoadNpy(ragged=True)" in message

    (ragged,) = first(folder, [LoadNpy(ragged=True)])
    assert ragged.values.dtype == np.int16
    assert ragged.offsets.tolist() == [0, 3, 6, 8, 11]


def test_arrays_of_unequal_type_name_both_keys(tmp_path):
    folder = objects(tmp_path, [npy(np.zeros(3, t)) for t in ("i2", "f4")])
    with pytest.raises(leat.InvalidArgument, match="type is float32, but that of .000.bin. is int16"):
        first(folder, [LoadNpy()])
    with pytest.raises(leat.InvalidArgument, match=r'field "data": .*"001.bin" is float32 \(3\).*int16 \(3\)'):
        first(folder, [LoadNpy(ragged=True)])


def test_json_of_mixed_types_names_both_keys_and_dtype(tmp_path):
    folder = objects(tmp_path, [b"1", b"2", b"2.5", b"3"])
    with pytest.raises(leat.InvalidArgument, match='"002.bin" is float64, but that of "000.bin" is int64; leat.ops.ParseJson.dtype=') as caught:
        first(folder, [ParseJson()])
    assert 'field "data"' in str(caught.value)
    (values,) = first(folder, [ParseJson(dtype="float64")])
    assert values.tolist() == [1, 2, 2.5, 3]


def test_the_type_of_json_is_that_of_the_first_batch(tmp_path):
    folder = objects(tmp_path, [b"1", b"2", b"2.5", b"3.5"])
    with pytest.raises(leat.InvalidArgument, match="is (float64, but|int64, but)"):
        first(folder, [ParseJson()], global_batch_size=2)
    folder = objects(tmp_path, [b"1", b"2", b'"x"', b'"y"'])
    with pytest.raises(leat.InvalidArgument, match="a text"):
        first(folder, [ParseJson()], global_batch_size=2)


def test_lists_may_differ_from_batch_to_batch_but_not_within_one(tmp_path):
    folder = objects(tmp_path, [b"[1,2]", b"[3,4]", b"[5,6,7]", b"[8,9,10]"])
    assert [v.shape for v in first(folder, [ParseJson()], global_batch_size=2)] == [(2, 2), (2, 3)]
    with pytest.raises(leat.InvalidArgument, match=r"int64 \(3\).*int64 \(2\).*ragged=True"):
        first(folder, [ParseJson()])
    with pytest.raises(leat.InvalidArgument, match="is one int64 and no list; drop ragged"):
        first(folder, [ParseJson("[0]", ragged=True)])


def test_empty_lists_take_the_type_of_the_others(tmp_path):
    folder = objects(tmp_path, [b"[]", b"[1.5]", b"[]", b"[2.5]", b"[]", b"[]", b"[]", b"[]"])
    batches = first(folder, [ParseJson(ragged=True)])
    assert [b.values.dtype for b in batches][0] == np.float64
    assert [b.tolist() for b in batches] == [[[], [1.5], [], [2.5]], [[], [], [], []]]


def test_an_empty_npy_with_sides_that_no_array_has_is_a_bad_sample(tmp_path):
    empty = npy(np.zeros((10, 0)))
    hostile = empty.replace(b"(10, 0), }" + b" " * 17, b"(4611686018427387904, 0), }")
    assert len(hostile) == len(empty) and hostile != empty
    folder = objects(tmp_path, [hostile, empty, empty, empty])
    with pytest.raises(leat.Corrupt, match="000.bin.*no items.*4611686018427387904"):
        first(folder, [LoadNpy()])
    (batch,) = first(folder, [LoadNpy()], on_error="substitute")
    assert batch.shape == (4, 10, 0)


def test_bad_samples_are_substituted(tmp_path):
    contents = [b"[1]", b"nonsense", b"[3,3]", b"[4]"]
    folder = objects(tmp_path, contents)
    with pytest.raises(leat.Corrupt, match='"001.bin": data: no JSON from byte'):
        first(folder, [ParseJson(ragged=True)])
    with leat.Loader(folder, global_batch_size=4, shuffle=False, output="numpy", ids=True, on_error="substitute",
                     ops=[ParseJson(ragged=True)]) as loader:  # fmt: skip
        (batch,) = loader
        other = batch["index"].tolist()[1]
        assert batch["index"].tolist() == [0, other, 2, 3] and other != 1
        assert batch["data"].tolist() == [[1], {0: [1], 2: [3, 3], 3: [4]}[other], [3, 3], [4]]
    folder = objects(tmp_path, [b"1", b"x", b"3", b"4"])
    numbers = first(folder, [ParseInt()], on_error="substitute")[0].tolist()
    assert numbers == [1, numbers[1], 3, 4] and numbers[1] in (1, 3, 4)
    assert first(folder, [ParseText()])[0] == ["1", "x", "3", "4"]


def test_memory_of_values_is_reserved(tmp_path):
    folder = objects(tmp_path, [npy(np.zeros(100_000, np.uint8))] * 8)
    with pytest.raises(leat.ResourceExhausted, match="slots of a batch of 8"):
        first(folder, [LoadNpy(ragged=True)], memory="1MB", global_batch_size=8)
    with leat.Loader(folder, ops=[LoadNpy(ragged=True)], memory="3MB", global_batch_size=8, shuffle=True, output="numpy") as loader:
        assert len(list(loader)) == 1
    assert loader.metrics()["leat_runtime_reserved_bytes"] == 0


def test_ops_find_their_fields_or_ask(shards, tmp_path):
    with pytest.raises(leat.InvalidArgument, match="parse_float: say which field"):
        leat.Loader(shards, global_batch_size=4, shuffle=True, output="numpy", ops=[ParseFloat()])
    with pytest.raises(leat.InvalidArgument, match="there is no field 'label'; fields of bytes: jpg, cls"):
        leat.Loader(shards, global_batch_size=4, shuffle=True, output="numpy", ops=[ParseInt("label")])
    with pytest.raises(leat.InvalidArgument, match="two fields would be named 'json'"):
        leat.Loader(shards, global_batch_size=4, shuffle=True, output="numpy", ops=[ParseJson("a"), ParseJson("b")])


def test_missing_members_are_bad_samples(tmp_path):
    members = [("0.cls", b"5"), ("0.txt", b"a"), ("1.txt", b"b"), ("2.cls", b"7"), ("2.txt", b"c")]
    write(tmp_path / "a.tar", tar_of(members))
    ops = [ParseInt(), ParseText()]
    with leat.Loader(tmp_path, global_batch_size=3, shuffle=False, output="numpy", ops=ops) as loader:
        with pytest.raises(leat.NotFound, match='the sample has no field "cls"'):
            next(iter(loader))
    with leat.Loader(tmp_path, global_batch_size=3, shuffle=False, output="numpy", ops=ops,
                     on_error="substitute") as loader:  # fmt: skip
        batch = next(iter(loader))
    assert list(zip(batch["cls"].tolist(), batch["txt"]))[1] in ((5, "a"), (7, "c"))
    assert batch["cls"].tolist()[::2] == [5, 7] and batch["txt"][::2] == ["a", "c"]


def test_the_command_takes_the_same_ops(shards):
    ops = (
        "decode_image,random_crop:8/9:padding=1/2,color_jitter:0.4:hue=-0.1/0.1,pad:1:fill=9,"
        "parse_int:cls,parse_json:score:to=score,parse_json:boxes:ragged=true:to=boxes,"
        "load_npy,parse_text,parse_float:flt:dtype=float32"
    )
    answer = subprocess.run(
        ["leat", "bench", str(shards), "--epochs", "1", "--global-batch-size", "6", "--ops", ops, "--json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    epoch = json.loads(answer.stdout)["epochs"][0]
    python_ops = [
        DecodeImage(), leat.ops.RandomCrop((8, 9), (1, 2)), leat.ops.ColorJitter(0.4, hue=(-0.1, 0.1)),
        leat.ops.Pad(1, fill=9), ParseInt("cls"), ParseJson("score", to="score"),
        ParseJson("boxes", to="boxes", ragged=True), LoadNpy(), ParseText(),
        ParseFloat("flt", dtype="float32"),
    ]  # fmt: skip
    with leat.Loader(shards, global_batch_size=6, shuffle=True, output="numpy", ops=python_ops) as loader:
        for _ in loader:
            pass
        assert loader.stats()[0]["content_hash"] == epoch["content_hash"]
