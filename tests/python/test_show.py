"""`leat show` and leat.show: pages of samples, made of six kinds of sources, as Chromium shows them."""

from __future__ import annotations

import http.client
import io
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import time
import wave
import weakref

import numpy as np
import pytest

import chromium
import leat
from leat._show import _html, _pixels, _samples
from leat.ops import (
    Cast, DecodeImage, DecodeMask, Documents, Filter, MixUp, Normalize, PadTo, ParseBoxes, ParseInt, ParseKeypoints,
    Python, RandomCrop, RandomHorizontalFlip, RandomResizedCrop, Resize,
)  # fmt: skip
from leat.testing import Bucket, find_binary
from mds_writer import write_mds
from small_datasets import encoded, make_pictures, pixels, tar_of, write
from task_data import make_hub, make_masks, make_shards, make_speech

ROOT = pathlib.Path(__file__).parents[2]
HOSTILE = "</script><img src=x onerror=document.title='owned'>\u202e&'\""


@pytest.fixture(scope="module")
def tab():
    with chromium.browser() as browser, chromium.tab(browser) as one:
        yield one


def look(tab: chromium.Tab, page: leat._show.Page, path: pathlib.Path) -> None:
    """The page in a browser, on a desk, on a phone in the dark and in print: it asks for nothing and complains of nothing."""
    page.save(path)
    for width, scheme, media in ((360, "dark", "screen"), (800, "dark", "print"), (1200, "light", "screen")):
        tab.show_as(width, scheme, media)
        tab.open(path)
        assert tab.errors == []
        assert tab.requests == [path.resolve().as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    broken = "[...document.images].filter(one => !(one.complete && one.naturalWidth > 0)).length"
    assert tab.evaluate(broken) == 0


def count(tab: chromium.Tab, selector: str) -> int:
    return tab.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")


def pixel(tab: chromium.Tab, selector: str, x: float, y: float) -> list[int]:
    """The colour of the first such picture there, of shares of its sides."""
    return tab.evaluate("""([selector, x, y]) => {
      const image = document.querySelector(selector), canvas = document.createElement("canvas");
      canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return [...context.getImageData(Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data];
    }""".replace("([selector, x, y]) =>", f"(() => {{ const [selector, x, y] = {json.dumps([selector, x, y])}; return (() =>") + ")(); })()")


# --- Six sources -------------------------------------------------------------


def test_a_folder_of_classes_is_shown_by_class(tab, pictures, tmp_path):
    page = leat.show(pictures, count=12)
    look(tab, page, tmp_path / "page.html")

    assert page.samples == 12
    assert tab.evaluate("[...document.querySelectorAll('.rows .name')].map(one => one.textContent)") == ["ant", "bee", "cat"]
    assert count(tab, "#group-1 .card") == 4
    [key] = tab.evaluate("[document.querySelector('#group-1 h3 span').textContent]")
    assert key.startswith("bee/") and count(tab, "img") == 12
    number = int(re.search(r"\d+", key)[0])
    expected = pixels(number)[5, 6].tolist()
    assert pixel(tab, "#group-1 img", 6.5 / 12, 5.5 / 10) == [*expected, 255]


def test_masks_of_a_manifest_are_drawn_over_their_pictures(tab, tmp_path):
    make_masks(tmp_path / "voc")
    dataset = leat.Dataset.from_manifest(tmp_path / "voc/pairs.csv", fields={"image": "image", "mask": "mask"})
    look(tab, leat.show(dataset, count=5), tmp_path / "plain.html")
    assert (count(tab, "img:not(.mask)"), count(tab, "img.mask")) == (5, 5)

    ops = [DecodeImage("image"), DecodeMask("mask"), RandomHorizontalFlip(p=1), Normalize("imagenet")]
    look(tab, leat.show(dataset, ops=ops, samples=[3]), tmp_path / "page.html")

    stored, mirrored = (pixel(tab, f".version:nth-child({place}) img.mask", 0.01, 0.5) for place in (1, 2))
    assert stored[:3] == list(_pixels.COLORS[0]) and stored[3] > 0
    assert mirrored[3] == 0, "the mask moved with its picture"
    assert tab.text(".version:nth-child(1) .labels").strip() == "1"
    tab.click("#masks")
    assert tab.evaluate("getComputedStyle(document.querySelector('img.mask')).visibility") == "hidden"


def test_boxes_and_points_are_drawn_where_ops_put_them(tab, tmp_path):
    make_shards(tmp_path / "boxes")
    ops = [DecodeImage("jpg"), ParseBoxes("json", path="boxes", labels="labels"), ParseKeypoints("json", path="points"),
           ParseInt("cls"), RandomHorizontalFlip(p=1)]  # fmt: skip
    look(tab, leat.show(tmp_path / "boxes", ops=ops, samples=[2]), tmp_path / "page.html")

    rects = tab.evaluate("[...document.querySelectorAll('.version')].map(one => [...one.querySelectorAll('rect')].map(r => [+r.getAttribute('x'), +r.getAttribute('width')]))")
    assert rects == [[[0, 16], [4, 16], [8, 16]], [[32, 16], [28, 16], [24, 16]]], "of 48 pixels, mirrored"
    assert count(tab, "circle") == 4
    assert tab.evaluate("[...document.querySelectorAll('.version:first-child svg text')].map(one => one.textContent)") == ["1", "2", "3"]
    picture, box = ("document.querySelector('.version:nth-child(2) %s').getBoundingClientRect()" % what for what in ("img", "rect"))
    assert tab.evaluate(f"({box}.left - {picture}.left) / {picture}.width") == pytest.approx(32 / 48, abs=0.02)


def test_tar_shards_show_texts_and_json(tab, tmp_path):
    members = [("000.txt", "grün, 10 €".encode()), ("000.json", b'{"a": [1, 2, 3]}'), ("000.bin", bytes(range(256)))]
    write(tmp_path / "s/0.tar", tar_of(members))
    look(tab, leat.show(tmp_path / "s"), tmp_path / "page.html")

    told = tab.text("main")
    assert "grün, 10 €" in told and "[ 1, 2, 3 ]" in told
    assert "00 01 02 03" in told and "256 bytes that are no text" in told


def test_tokens_are_numbers_or_what_a_tokenizer_makes_of_them(tab, tmp_path):
    write(tmp_path / "c/0.bin", np.arange(100, 1100, dtype="<u2").tobytes())
    tokens = leat.Dataset.tokens(tmp_path / "c", dtype="uint16", seq_len=100)
    look(tab, leat.show(tokens, samples=[1]), tmp_path / "page.html")
    assert "200 201 202" in tab.text("main") and "uint16 (100)" in tab.text("main")

    look(tab, leat.show(tokens, samples=[1], decode=lambda ids: f"begins with {ids[0]}"), tmp_path / "text.html")
    assert "begins with 200" in tab.text("main")


def test_parquet_and_mds_are_shown(tab, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    make_hub(tmp_path / "hub")
    look(tab, leat.show(tmp_path / "hub", count=6), tmp_path / "page.html")
    assert count(tab, "img") == 6 and count(tab, ".rows li") == 3

    columns = {"image": ("png", None), "row": ("ndarray:float32:40", 160), "map": ("ndarray:float32:8,9", 288)}
    sample = {"image": encoded(pixels(1)), "row": np.sin(np.arange(40, dtype="<f4")).tobytes(),
              "map": np.arange(72, dtype="<f4").tobytes()}  # fmt: skip
    look(tab, leat.show(write_mds(tmp_path / "mds", columns, [sample])), tmp_path / "mds.html")
    assert count(tab, "img") == 2, "the array of two dimensions is a thumbnail"
    assert count(tab, "svg.line polyline") == 1 and "from -1 to 0.9999" in tab.text("main")


def test_sound_is_played(tab, tmp_path):
    make_speech(tmp_path / "speech", count=3)
    long = io.BytesIO()
    with wave.open(long, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 8000 * 60))
    write(tmp_path / "speech/cat/long.wav", long.getvalue())
    look(tab, leat.show(tmp_path / "speech", by=None), tmp_path / "page.html")

    tab.eventually("[...document.querySelectorAll('audio')].every(one => one.duration > 0)")
    lengths = tab.evaluate("[...document.querySelectorAll('audio')].map(one => one.duration)")
    assert sorted(lengths) == pytest.approx([0.1, 0.1125, 0.125, 10], abs=0.001)
    assert "60.00 s, 8,000 Hz, 1 channel; the first 10 s" in tab.text("main")


def test_a_mix_is_shown_by_source(tab, pictures, tmp_path):
    dataset = leat.Dataset(pictures)
    mix = leat.mix({"many": (dataset, 3.0), "few": (dataset[:20], 1.0)})
    look(tab, leat.show(mix, count=8), tmp_path / "page.html")

    assert tab.evaluate("[...document.querySelectorAll('.rows .name')].map(one => one.textContent)") == ["many", "few"]
    assert count(tab, "#group-0 .card") == count(tab, "#group-1 .card") == 4


# --- The same as a training sees ---------------------------------------------


def shown_pixels(tab: chromium.Tab, version: int) -> np.ndarray:
    data = tab.evaluate(f"""(() => {{
      const image = document.querySelector(".version:nth-child({version}) img"), canvas = document.createElement("canvas");
      canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return [canvas.height, canvas.width, ...context.getImageData(0, 0, canvas.width, canvas.height).data];
    }})()""")
    return np.array(data[2:], np.uint8).reshape(data[0], data[1], 4)[..., :3]


def test_draws_are_those_of_a_training_with_this_seed(tab, pictures, tmp_path):
    ops = [DecodeImage(), RandomResizedCrop(9), RandomHorizontalFlip()]
    look(tab, leat.show(pictures, ops=ops, samples=[41], seed=5, epochs=2), tmp_path / "page.html")

    for epoch in (0, 1):
        with leat.Loader(pictures, batch_size=6, train=True, seed=5, ops=ops, ids=True, output="numpy") as loader:
            loader.set_epoch(epoch)
            [seen] = [image for batch in loader for image, number in zip(batch["image"], batch["index"]) if number == 41]
        assert (shown_pixels(tab, 2 + epoch) == seen.transpose(1, 2, 0)).all(), epoch
    assert (shown_pixels(tab, 2) != shown_pixels(tab, 3)).any()


def test_a_normalized_picture_looks_as_before(tab, pictures, tmp_path):
    ops = [DecodeImage(), Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.1])]
    look(tab, leat.show(pictures, ops=ops, samples=[7]), tmp_path / "page.html")

    assert np.abs(shown_pixels(tab, 1).astype(int) - shown_pixels(tab, 2)).max() <= 1
    assert (shown_pixels(tab, 1) == pixels(7)).all()


def test_chains_stand_side_by_side_and_ops_of_batches_too(tab, pictures, tmp_path):
    chains = {"small": [DecodeImage(), Resize(6)], "mixed": [DecodeImage(), Cast(), MixUp(num_classes=3)]}
    look(tab, leat.show(pictures, ops=chains, count=3), tmp_path / "page.html")

    assert tab.evaluate("[...document.querySelectorAll('#group-0 h4')].map(one => one.textContent)") == ["as stored", "small", "mixed"]
    assert count(tab, ".bad") == 0


def test_a_bad_sample_and_one_that_a_filter_leaves_out_say_so(tab, tmp_path):
    make_pictures(tmp_path / "d", 6)
    write(tmp_path / "d/bee/00003.png", b"\x89PNG\r\n\x1a\n but no more")
    ops = [DecodeImage(), Filter(lambda image: image[0, 0, 0] != pixels(1)[0, 0, 0], field="image")]
    look(tab, leat.show(tmp_path / "d", ops=ops, by=None), tmp_path / "page.html")

    bad = tab.evaluate("[...document.querySelectorAll('.card')].map(one => one.querySelectorAll('.bad').length)")
    assert bad == [0, 1, 0, 2, 0, 0]
    assert "Filter" in tab.text(".card:nth-child(2) .bad") and "00003.png" in tab.text(".card:nth-child(4) .bad >> nth=0")


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("fields", [None, ("document_ids", "tokens"), ("document_ids",), ("tokens", "position_ids")])
def test_a_loader_shows_each_value_under_its_own_name(tmp_path, fields, ids):
    write(tmp_path / "c/0.bin", np.arange(100, 200, dtype="<u2").tobytes())
    tokens = leat.Dataset.tokens(tmp_path / "c", dtype="uint16", seq_len=10)
    values = {"tokens": "102 103 104", "document_ids": "0 0 0 1 1", "position_ids": "0 1 2 0 1"}
    with leat.Loader(tokens, batch_size=1, train=False, fields=fields, ids=ids, batch="tuple", output="numpy",
                     ops=[Documents(eos=102)]) as loader:  # fmt: skip
        page = leat.show(loader).html

    shown = dict(re.findall(r"<dt>(\w+)</dt><dd><pre>([\d ]+)</pre>", page))
    assert [*shown] == [*(fields or values)]
    assert all(values[name] in shown[name] for name in shown)
    assert ("<span class=\"soft\">0</span></h3>" in page) == ids  # The number of the sample.


def test_a_loader_whose_function_made_another_tuple_is_not_shown(tmp_path):
    write(tmp_path / "c/0.bin", np.arange(100, 200, dtype="<u2").tobytes())
    tokens = leat.Dataset.tokens(tmp_path / "c", dtype="uint16", seq_len=10)
    twice = Python(lambda batch: (*batch, *batch), per="batch")
    with leat.Loader(tokens, batch_size=1, train=False, batch="tuple", output="numpy", ops=[twice]) as loader:
        with pytest.raises(leat.InvalidArgument, match="a tuple of 2 values, and there is 1 field"):
            leat.show(loader)


@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_a_loader_shows_its_next_batch_and_stays_where_it_is(tab, pictures, tmp_path, output):
    pytest.importorskip(output)
    with leat.Loader(pictures, batch_size=5, train=True, fields={"x": "image", "y": "label", "index": "index"},
                     ops=[DecodeImage(), Cast(), PadTo(16)], output=output) as loader:  # fmt: skip
        state = loader.state_dict()
        page = leat.show(loader)
        assert loader.state_dict() == state
        numbers = [int(number) for number in next(iter(loader))["index"]]
    look(tab, page, tmp_path / "page.html")

    assert page.samples == 5
    assert [int(one) for one in tab.evaluate("[...document.querySelectorAll('h3 .soft')].map(one => one.textContent)")] == numbers
    assert (shown_pixels(tab, 1)[:10, :12] == pixels(numbers[0])).all()


# --- Hostile data ------------------------------------------------------------


def test_nothing_of_the_data_runs_or_hides(tab, tmp_path):
    name = HOSTILE.replace("/", "_")
    write(tmp_path / "d" / name / f"{name}.png", encoded(pixels(1)))
    write(tmp_path / "d" / "other" / "1.png", encoded(pixels(2)))
    look(tab, leat.show(tmp_path / "d"), tmp_path / "names.html")
    assert tab.evaluate("document.title").startswith("Samples of") and count(tab, "script") == 0
    assert count(tab, "img") == 2
    assert r"\x202e&" in tab.text("main") and "\u202e" not in (tmp_path / "names.html").read_text()

    members = [("0.txt", HOSTILE.encode()), ("0.json", json.dumps({HOSTILE: [HOSTILE]}).encode()),
               ("0.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>document.title='owned'</script></svg>")]  # fmt: skip
    write(tmp_path / "s/0.tar", tar_of(members))
    look(tab, leat.show(tmp_path / "s", decode=lambda data: HOSTILE + data.decode()), tmp_path / "texts.html")
    assert tab.evaluate("document.title").startswith("Samples of")
    assert count(tab, "script") + count(tab, "img") == 0 and "onerror=document.title='owned'" in tab.text("main")


def test_the_page_forbids_what_it_does_not_need(tab, pictures, tmp_path):
    text = leat.show(pictures, count=3).html
    (tmp_path / "page.html").write_text(text.replace("<main>", "<main><script>document.title = 'ran'</script><img src='http://127.0.0.1:9/x'>"))
    tab.open(tmp_path / "page.html")

    assert tab.evaluate("document.title").startswith("Samples of")
    assert any("Content Security Policy" in error for error in tab.errors)


def test_damaged_files_of_each_kind_are_told(tab, tmp_path):
    for kind, begin in (("jpg", b"\xff\xd8\xff\xe0"), ("webp", b"RIFF\0\0\0\0WEBP"), ("wav", b"RIFF\0\0\0\0WAVE"),
                        ("npy", b"\x93NUMPY\x01\0"), ("json", b"[" * 100_000), ("txt", b""), ("mp4", b"\0\0\0\x18ftypmp42")):  # fmt: skip
        write(tmp_path / f"{kind}/x.{kind}", begin)
        look_at = leat.show(leat.Dataset(tmp_path / kind, extensions="*"))
        assert f"x.{kind}" in look_at.html
        look_at.save(tmp_path / "page.html")
        tab.open(tmp_path / "page.html")
        assert count(tab, ".card") == 1


def test_sizes_that_no_machine_has_are_told(tmp_path):
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % 2**70
    write(tmp_path / "large.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(head) + 1) + head + b"\n")
    rate, data = 2**31, bytes(3 << 20)
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 2, rate, rate, 4, 16)
    write(tmp_path / "fast.wav", b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVE" + form +
          b"data" + struct.pack("<I", len(data)) + data)  # fmt: skip
    write(tmp_path / "good.txt", b"as it is")

    page = leat.show(tmp_path, by=None)

    assert page.samples == 3
    for says in ("a .npy that cannot be read", "too long to be put into a page", "as it is"):
        assert says in page.html


def test_damaged_arrays_leave_a_long_one_on_the_page(tmp_path):
    for name, head in (("torn", b"{'descr': ('<f4',"),
                       ("odd", b"{'descr': ('<f4',), 'fortran_order': False, 'shape': (3,), }")):  # fmt: skip
        write(tmp_path / f"d/{name}.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(head) + 1) + head + b"\n")
    np.save(tmp_path / "d/tall.npy", np.arange(5_600_000, dtype=np.uint32).astype(np.uint8).reshape(70_000, 80))
    np.save(tmp_path / "d/wide.npy", np.zeros((80, 70_000), np.uint8))

    page = leat.show(leat.Dataset(tmp_path / "d", extensions="*"))

    assert page.samples == 4 and page.html.count("a .npy that cannot be read") == 2
    assert "uint8 (70000, 80)" in page.html and "uint8 (80, 70000)" in page.html


def test_few_samples_are_read_ahead_and_none_is_kept():
    class Sample:
        pass

    begun: list[int] = []
    made: list[weakref.ref] = []

    def read(number: int) -> Sample:
        begun.append(number)
        sample = Sample()
        made.append(weakref.ref(sample))
        return sample

    for taken, _ in enumerate(_samples._read_ahead(read, range(200))):
        time.sleep(1e-3)  # The readers are faster.
        assert len(begun) - taken <= _samples._AHEAD
        assert sum(sample() is not None for sample in list(made)) <= _samples._AHEAD + _samples._READERS
    assert sorted(begun) == list(range(200))


def test_a_value_that_is_too_long_is_not_read(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(leat._show._samples, "MOST_BYTES", 300)
    write(tmp_path / "d/large.txt", b"x" * 301)
    write(tmp_path / "d/small.txt", b"y" * 299)

    told = leat.show(leat.Dataset(tmp_path / "d", extensions="*")).html

    assert "301 bytes: too long to be shown" in told and "x" * 301 not in told and "y" * 299 in told


def test_a_page_has_a_largest_size(pictures, monkeypatch):
    monkeypatch.setattr(_html, "MOST_PAGE_BYTES", 5000)

    told = leat.show(pictures, by=None, count=20).html

    shown = told.count("<article")
    assert 0 < shown < 20 and f"{20 - shown} samples more are left out" in told


# --- Arguments, notebooks and the sheet --------------------------------------


@pytest.mark.parametrize(("given", "says"), [
    ({"by": "colour"}, "by='colour': the dataset has no such column; it has label"),
    ({"samples": [60]}, "samples= has 60; there are samples 0 to 59"),
    ({"count": 0}, "count=0"),
    ({"count": 5000}, "a page has at most 1000"),
    ({"decode": 3}, "decode=3; it is a function"),
    ({"ops": "resize"}, "is a text; write a list"),
])  # fmt: skip
def test_what_cannot_be_shown_is_refused(pictures, given, says):
    with pytest.raises(leat.InvalidArgument, match=says):
        leat.show(pictures, **given)
    with pytest.raises(TypeError, match="did you mean 'count'"):
        leat.show(pictures, coun=3)


def test_a_notebook_shows_it_in_a_frame_that_runs_nothing(tab, pictures, tmp_path):
    page = leat.show(pictures, count=3)
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>x</title>{page._repr_html_()}")
    tab.open(tmp_path / "notebook.html")

    frame = tab.page.frames[1]
    assert frame.evaluate("document.querySelectorAll('.card').length") == 3
    assert tab.evaluate("document.querySelector('iframe').getAttribute('sandbox')") == ""


def test_the_sheet_has_the_rules_of_the_dashboard():
    """Those that it begins with: the two pages look alike."""
    own = (ROOT / "python/leat/_show/show.css").read_text().partition("/* What this page has")[0]
    rules = [line for line in own.splitlines() if line.strip()]
    there = (ROOT / "dashboard/src/style.css").read_text().splitlines()

    assert len(rules) > 30
    assert [rule for rule in rules if rule not in there] == []


# --- The command -------------------------------------------------------------


def run(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_binary(), "show", *words], cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_writes_a_page(tab, pictures, tmp_path):
    (tmp_path / "chains.py").write_text("from leat.ops import *\ntrain = [DecodeImage(), RandomCrop(5)]\ndef valid():\n    return [DecodeImage(), Resize(7)]\n")
    done = run(tmp_path, str(pictures), "--samples", "6", "--ops", "chains.py:train", "--ops", "chains:valid",
               "--ops", "small=decode_image,resize:4", "--json")  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["samples"] == 6 and told["bytes"] == (tmp_path / "leat-show.html").stat().st_size
    tab.open(tmp_path / "leat-show.html")
    names = tab.evaluate("[...document.querySelector('.card').querySelectorAll('h4')].map(one => one.textContent)")
    assert names == ["as stored", "chains.py:train", "chains:valid", "small"]
    shown = tab.text(".card >> nth=0")
    assert "5 × 5" in shown and "8 × 7" in shown and "4 × 4" in shown


def test_on_a_full_disk_the_old_page_stays(pictures, tmp_path):
    page = leat.show(pictures, count=12)
    page.save(tmp_path / "page.html")
    (tmp_path / "latest.html").symlink_to("page.html")
    old = (tmp_path / "page.html").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(old) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="page.html'$"):
            page.save(tmp_path / "page.html")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert (tmp_path / "page.html").read_bytes() == old
    leat.show(pictures, count=1).save(tmp_path / "latest.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.html", "page.html"]
    assert (tmp_path / "latest.html").is_symlink() and len((tmp_path / "page.html").read_bytes()) < len(old)


def test_the_command_reads_tables_and_tokens(tmp_path):
    make_masks(tmp_path / "voc", 4)
    write(tmp_path / "c/0.bin", np.arange(1000, dtype="<u2").tobytes())

    table = run(tmp_path, "voc/pairs.csv", "--manifest", "image=image", "--manifest", "mask=mask")
    tokens = run(tmp_path, "c", "--tokens", "uint16:10", "--out", "tokens.html")

    assert (table.returncode, tokens.returncode) == (0, 0), table.stderr + tokens.stderr
    assert (tmp_path / "leat-show.html").read_text().count('class="mask') == 4
    assert "uint16 (10)" in (tmp_path / "tokens.html").read_text()


@pytest.mark.parametrize(("words", "code", "says"), [
    ((), 2, "the following arguments are required: URL; see leat show --help"),
    (("nowhere",), 1, "nowhere"),
    (("{pictures}", "--ops", "nothing.py:train"), 2, "--ops nothing.py:train"),
    (("{pictures}", "--ops", "math:pi"), 2, "is no list of leat.ops"),
    (("{pictures}", "--sampels", "3"), 2, "unrecognized arguments: --sampels 3; see leat show --help"),
    (("{pictures}", "--tokens", "uint16"), 2, "write DTYPE:SEQ_LEN"),
    (("{pictures}", "--manifest", "a=b", "--tokens", "uint16:3"), 2, "URL is one of these"),
])  # fmt: skip
def test_wrong_usage_is_one_line(pictures, tmp_path, words, code, says):
    done = run(tmp_path, *(word.format(pictures=pictures) for word in words))

    told = [line for line in done.stderr.splitlines() if not line.startswith("leat: info")]
    assert (done.returncode, done.stdout, len(told)) == (code, "", 1)
    assert told[0].startswith("leat: ") and says in told[0]


def test_help_has_an_example():
    done = subprocess.run([find_binary(), "show", "--help"], capture_output=True, text=True, check=True)
    assert "Example:\n  leat show s3://" in done.stdout


def test_a_file_of_ops_may_have_dataclasses(tmp_path, pictures):
    (tmp_path / "aug.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom leat.ops import *\n"
        "@dataclass\nclass Sizes:\n    side: int = 5\n\ntrain = [DecodeImage(), RandomCrop(Sizes().side)]\n"
    )
    done = run(tmp_path, str(pictures), "--samples", "1", "--ops", "aug.py:train", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 1


def test_a_function_of_a_file_of_ops_needs_no_process(tmp_path, pictures):
    (tmp_path / "aug.py").write_text(
        "from leat.ops import *\ndef darker(image):\n    return image // 2\n"
        "def is_bright(image):\n    return bool(image.max() > 9)\n"
        'train = [DecodeImage(layout="HWC"), Python(darker, workers="processes"),\n'
        '         Filter(is_bright, workers="processes")]\n'
    )
    done = run(tmp_path, str(pictures), "--samples", "2", "--ops", "aug.py:train", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 2
    assert 'class="bad"' not in (tmp_path / "leat-show.html").read_text()


def test_the_working_folder_is_not_imported(tmp_path, pictures):
    for name in ("leat", "numpy"):
        write(tmp_path / name / "__init__.py", b"raise SystemExit('the wrong one')")
    assert run(tmp_path, str(pictures)).returncode == 0


def test_ctrl_c_ends_it_in_an_outage(tmp_path):
    make_pictures(tmp_path / "store/b", 40)
    with Bucket(tmp_path / "store", latency="1ms", fault_script="after 0 GET * 503 x*") as bucket:
        process = subprocess.Popen(
            [find_binary(), "show", "s3://b", "--by", "none"], cwd=tmp_path, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **bucket.env()},
        )  # fmt: skip
        # Its readers wait for the store by now.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 1
    assert time.monotonic() - begun < 10
    assert process.stderr.read() == "leat: stopped\n"


def test_it_is_served_to_this_machine_alone(tab, pictures, tmp_path):
    process = subprocess.Popen([find_binary(), "show", str(pictures), "--serve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        first = process.stdout.readline()
        assert (found := re.fullmatch(r"listening on http://127\.0\.0\.1:(\d+)\n", first)), first
        url = f"http://127.0.0.1:{found[1]}/"
        tab.open(url)
        assert count(tab, ".card") == 24 and tab.errors == [] and tab.requests == [url]

        def ask(host: str, path: str = "/") -> int:
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]))
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status

        assert ask(f"localhost:{found[1]}") == 200
        assert ask(f"evil.example:{found[1]}") == ask("evil.example") == ask(f"localhost:{found[1]}", "/x") == 404
    finally:
        process.send_signal(2)
        assert process.wait(30) == 0, process.stderr.read()
