"""Shards of every common writer, read field by field as WebDataset reads them.

The writers are the real ones: the package webdataset, GNU tar, Python's tarfile,
libarchive's bsdtar. The expected samples come from webdataset's own reader.
"""

from __future__ import annotations

import io
import pathlib
import random
import shutil
import subprocess
import tarfile

import pytest

import leat
from small_datasets import tar_of, write

_random = random.Random(3)

# In this order in the archives; consecutive members of one key are a sample.
MEMBERS = {
    "0001.jpg": b"first",
    "0001.cls": b"7",
    "0001.seg.PNG": _random.randbytes(20_000),  # A field with a dot, in upper case.
    "a.b/0002.x.jpg": b"",  # Dots in folder and field; empty.
    "a.b/0002.json": b"{}",
    "train/x/0003.jpg": _random.randbytes(511),
    "train/x/0003.txt": _random.randbytes(512),
    "train/y/0003.txt": _random.randbytes(513),
    "._0004.jpg": b"Mac OS X",  # Macs add this beside 0004.jpg.
    "0004.jpg": b"fourth",
    "README": b"no sample",
    "0004.cls": b"still the fourth",
    "__meta__/shard.json": b"no sample",
    "__note__": b"no sample",
    f"{'n' * 150}.jpg": b"a long name",
    f"{'n' * 150}.cls": b"its second field",
    f"{'d' * 70}/{'e' * 70}/{'f' * 90}.jpg": b"a path that ustar cuts in two",
    f"{'d' * 120}/{'e' * 120}/{'f' * 140}.jpg": b"a path too long for ustar",
    "größe/naïve.jpg": b"names in UTF-8",
    "with space/a b.jpg": b"names with blanks",
    "0009.": b"a field without a name",
    "0010.JPG": b"upper case",
    "0001.jpg.bak": b"the first key again, later: a sample of its own",
}
# Ustar has no room for the others.
SHORT = {
    name: data for name, data in MEMBERS.items()
    if len(name.rpartition("/")[2]) < 100 and len(name) < 256
}


@pytest.fixture
def files(tmp_path) -> pathlib.Path:
    for name, data in MEMBERS.items():
        write(tmp_path / "files" / name, data)
    (tmp_path / "shards").mkdir()
    return tmp_path / "files"


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, timeout=30)


def by_gnu_tar(files, shard, names, *options) -> None:
    if "GNU tar" not in subprocess.run(["tar", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("the tar on PATH is not GNU tar, whose formats are tried here; Debian's is")
    listed = write(shard.parent.parent / "names", "\n".join(names).encode())
    run("tar", "-cf", shard, "-C", files, *options, "--no-recursion", "--verbatim-files-from",
        "-T", listed)


def by_bsdtar(files, shard, names, *options) -> None:
    if shutil.which("bsdtar") is None:
        pytest.skip("bsdtar, which writes these, is not installed: apt-get install libarchive-tools")
    listed = write(shard.parent.parent / "names", "\n".join(names).encode())
    run("env", "LC_ALL=C.UTF-8", "bsdtar", "-cf", shard, "-C", files, *options, "--no-recursion",
        "-T", listed)


def by_tarfile(files, shard, names, format) -> None:
    with tarfile.open(shard, "w", format=format) as tar:
        for name in names:
            tar.add(files / name, arcname=name)


WRITERS = {
    "GNU tar, gnu": (by_gnu_tar, MEMBERS, ["--format=gnu"]),
    "GNU tar, pax": (by_gnu_tar, MEMBERS, ["--format=pax"]),
    "GNU tar, ustar": (by_gnu_tar, SHORT, ["--format=ustar"]),
    "GNU tar, v7": (by_gnu_tar, {n: d for n, d in MEMBERS.items() if len(n.encode()) < 99},
                    ["--format=v7"]),
    "bsdtar, pax": (by_bsdtar, MEMBERS, ["--format=pax"]),
    "bsdtar, its default": (by_bsdtar, MEMBERS, []),
    "bsdtar, gnutar": (by_bsdtar, MEMBERS, ["--format=gnutar"]),
    "bsdtar, ustar": (by_bsdtar, SHORT, ["--format=ustar"]),
    "tarfile, gnu": (by_tarfile, MEMBERS, [tarfile.GNU_FORMAT]),
    "tarfile, pax": (by_tarfile, MEMBERS, [tarfile.PAX_FORMAT]),
    "tarfile, ustar": (by_tarfile, SHORT, [tarfile.USTAR_FORMAT]),
}


@pytest.fixture(scope="session")
def webdataset():
    return pytest.importorskip(
        "webdataset", reason="the package webdataset is not in Debian: pip install webdataset"
    )


def as_webdataset_reads(webdataset, shards: pathlib.Path, **options) -> list[dict]:
    urls = [str(path) for path in sorted(shards.glob("*.tar"))]
    dataset = webdataset.WebDataset(urls, shardshuffle=False, empty_check=False, **options)
    notes = ("__url__", "__local_path__")
    return [{k: v for k, v in sample.items() if k not in notes} for sample in dataset]


def as_leat_reads(shards: pathlib.Path) -> list[dict]:
    dataset = leat.Dataset(shards, refresh="always")
    return [
        {"__key__": dataset.key(i)}
        | {
            field: (shards / where[0]).read_bytes()[where[1]:where[1] + where[2]]
            for field in dataset.fields
            if (where := dataset._native.range(field, i)) is not None
        }
        for i in range(len(dataset))
    ]


# --- writers ----------------------------------------------------------------


@pytest.mark.parametrize("writer", WRITERS)
def test_what_was_packed_is_read_as_webdataset_reads_it(webdataset, files, writer):
    pack, members, options = WRITERS[writer]
    shards = files.parent / "shards"
    pack(files, shards / "0.tar", list(members), *options)

    read = as_leat_reads(shards)

    assert read == as_webdataset_reads(webdataset, shards)
    # And neither lost anything.
    assert [sample["__key__"] for sample in read][:4] == [
        "0001", "a.b/0002", "train/x/0003", "train/y/0003"
    ]
    assert read[0]["seg.png"] == MEMBERS["0001.seg.PNG"]
    assert read[4] == {"__key__": "0004", "jpg": b"fourth", "cls": b"still the fourth"}
    data = [data for name, data in members.items() if data != b"no sample" and name[:2] != "._"]
    assert sorted(v for s in read for f, v in s.items() if f != "__key__") == sorted(data)


@pytest.mark.parametrize("pack", [by_gnu_tar, by_bsdtar])
def test_a_folder_packed_as_a_dot(webdataset, files, pack):
    """`tar -cf x.tar .`: names begin with "./", and so do WebDataset's keys."""
    shards = files.parent / "shards"
    if pack is by_bsdtar and shutil.which("bsdtar") is None:
        pytest.skip("bsdtar, which writes these, is not installed: apt-get install libarchive-tools")
    for name in MEMBERS:
        if pathlib.Path(name).name.startswith("."):
            (files / name).unlink()
    tool = ["bsdtar"] if pack is by_bsdtar else ["tar", "--sort=name"]
    run("env", "LC_ALL=C.UTF-8", *tool, "-cf", shards / "0.tar", "-C", files, ".")

    read = as_leat_reads(shards)

    assert read == as_webdataset_reads(webdataset, shards)
    assert all(sample["__key__"].startswith("./") for sample in read)


@pytest.mark.parametrize("options", [{}, {"mtime": 12.5}, {"keep_meta": True}])
def test_shards_of_webdatasets_own_writer(webdataset, tmp_path, serve, options):
    samples = [
        {"__key__": f"{number // 10}/{number:05}", "cls": number % 7, "json": {"n": number},
         "jpg": random.Random(number).randbytes(100 * (number % 4)),
         "caption.txt": f"nº {number}"}
        for number in range(40)
    ]
    (tmp_path / "shards").mkdir()
    pattern = str(tmp_path / "shards" / "%04d.tar")
    with webdataset.ShardWriter(pattern, maxcount=15, verbose=0, **options) as sink:
        for sample in samples:
            sink.write(sample)

    theirs = as_webdataset_reads(webdataset, tmp_path / "shards")

    assert as_leat_reads(tmp_path / "shards") == theirs and len(theirs) == 40
    served = serve(tmp_path / "shards")
    fields = ["cls", "json", "jpg", "caption.txt", "key"]
    with served.loader(global_batch_size=8, shuffle=False, fields=fields) as loader:
        got = []
        for batch in loader:
            for at, key in enumerate(batch["key"]):
                got.append({"__key__": key} | {
                    field: batch[field].tolist()[at] for field in fields if field != "key"})
    assert got == [{name: sample[name] for name in ["__key__", *fields[:-1]]} for sample in theirs]


# --- names ------------------------------------------------------------------


@pytest.mark.parametrize("names", [
    ["a.jpg", "a.JPG2", "a.b.c.d", "a..jpg", "a.", "b"],
    ["..a/b.jpg", "...", "a.b/c", "a.b/c.d/e.f"],
    ["__a__", "__a__/b.jpg", "__a__.jpg", "____/x.jpg", "___/x.jpg", "__a.b__", "x/__a__.jpg",
     "x/__a__/b.jpg"],
    ["._a.jpg", "a.jpg", ".hidden", ".a.b"],
    ["./a.jpg", "././b.jpg", ".//c.jpg", "a//b.jpg", "./__meta__.json", "./__m__/x.jpg"],
    ["x/1.a", "y/1.a", "x/1.b", "x/1.a"],  # A key again after another is a new sample.
    ["a b.jpg", "a\tb.jpg", "a\\b.jpg", "a:b.jpg", "a=b.jpg", "ä.jpg", "日本.jpg"],
])  # fmt: skip
def test_names_mean_what_they_mean_to_webdataset(webdataset, tmp_path, names):
    members = [(name, name.encode()) for name in names]
    for format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        write(tmp_path / "0.tar", tar_of([*members, ("last.jpg", b"")], format))
        assert as_leat_reads(tmp_path) == as_webdataset_reads(webdataset, tmp_path)


def test_dot_files_in_folders_tear_no_sample_apart(webdataset, tmp_path):
    """A Mac's tar puts `._x` before each x. WebDataset passes over those at the top,
    makes a sample of those in folders, and cuts the samples around them; here they
    are passed over everywhere, as DALI does."""
    members = [(name, name.encode()) for name in (
        "a/._1.jpg", "a/1.jpg", "a/._1.cls", "a/1.cls", "a/._2.jpg", "a/2.jpg")]
    write(tmp_path / "0.tar", tar_of(members))

    read = as_leat_reads(tmp_path)

    assert [sample["__key__"] for sample in read] == ["a/1", "a/2"]
    assert read == as_webdataset_reads(
        webdataset, tmp_path, select_files=lambda name: "/." not in name)


def test_links_folders_and_devices_are_no_members(webdataset, tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind in [("d.jpg", tarfile.DIRTYPE), ("s.jpg", tarfile.SYMTYPE),
                           ("h.jpg", tarfile.LNKTYPE), ("f.jpg", tarfile.FIFOTYPE),
                           ("c.jpg", tarfile.CONTTYPE), ("r.jpg", tarfile.AREGTYPE)]:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "r.jpg"
            tar.addfile(info)
    write(tmp_path / "0.tar", out.getvalue())

    read = as_leat_reads(tmp_path)

    assert [sample["__key__"] for sample in read] == ["c", "r"]
    assert read == as_webdataset_reads(webdataset, tmp_path)


def test_a_sample_ends_with_its_shard(webdataset, tmp_path):
    write(tmp_path / "0.tar", tar_of([("1.jpg", b"a")]))
    write(tmp_path / "1.tar", tar_of([("1.cls", b"b"), ("2.jpg", b"c")]))

    read = as_leat_reads(tmp_path)

    assert read == as_webdataset_reads(webdataset, tmp_path) and len(read) == 3


# --- what cannot be read ----------------------------------------------------


def test_a_field_twice_is_an_error_as_it_is_there(webdataset, tmp_path):
    write(tmp_path / "0.tar", tar_of([("1.jpg", b"a"), ("1.JPG", b"b")]))

    with pytest.raises(ValueError, match="duplicate"):
        as_webdataset_reads(webdataset, tmp_path)
    with pytest.raises(leat.Corrupt, match=r"0\.tar.*sample '1' has 'jpg' twice"):
        leat.Dataset(tmp_path)


@pytest.mark.parametrize("format", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_shard_cut_short_is_an_error_that_names_it(tmp_path, format):
    name = "n" * 200 + ".jpg"
    whole = tar_of([("1.jpg", b"x" * 700), (name, b"y" * 100)], format)
    content = len(whole.rstrip(b"\0"))
    # Within bodies, within headers, between members, before the end.
    for size in [*range(0, content, 256), content - 1, content, 700, 1025]:
        write(tmp_path / "cut.tar", whole[:size])
        with pytest.raises(leat.Corrupt, match=r"cut\.tar.*at byte \d+.*cut short"):
            leat.Dataset(tmp_path, refresh="always")
