"""Decoders hold what memory= lets them, and passes over a picture are bounded."""

from __future__ import annotations

import io
import json
import time

import numpy as np
import pytest
from PIL import Image

import leat
from leat.ops import DecodeImage, Resize
from small_datasets import run_python

MIB = 2**20
SIDE = 6000  # 36 million pixels, in a few hundred kB.


def large(path, kind: str, side: int = SIDE) -> None:
    picture = Image.new("RGB", (side, side), (120, 40, 200))
    if kind == "webp":
        picture.save(path, lossless=True, method=0)
    elif kind == "jpeg":
        picture.save(path, progressive=True, subsampling=0, quality=50)
    else:
        path.write_bytes(interlaced(side))


def interlaced(side: int) -> bytes:
    """A grey PNG by Adam7: Pillow reads such and writes none."""
    import struct
    import zlib

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    pack = zlib.compressobj(1)
    rows = []
    for x, y, across, down in passes:
        width = (side - x + across - 1) // across
        row = bytes(1 + width)
        rows += [pack.compress(row) for _ in range((side - y + down - 1) // down)]
    deflated = b"".join(rows) + pack.flush()
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", deflated) + chunk(b"IEND", b"")


RUN = """
import json, pathlib, sys
import leat
from leat.ops import DecodeImage, Resize

def memory(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024

folder, budget = sys.argv[1:]
before = memory("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")
error = ""
try:
    with leat.Loader(folder, batch_size=2, shuffle=False, drop_last=False, ops=[DecodeImage(), Resize((32, 32))], memory=budget, threads=4, fields=["image"]) as loader:
        for _ in loader:
            pass
except leat.Error as raised:
    error = f"{type(raised).__name__}: {raised}"
print(json.dumps({"peak": memory("VmHWM") - before, "error": error}))
"""


def run(folder, budget: str) -> dict:
    done = run_python(RUN, str(folder), budget, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["webp", "jpeg", "png"])
def test_a_picture_that_cannot_fit_is_an_error_that_says_what_to_do(tmp_path, kind):
    large(tmp_path / f"large.{kind}", kind)
    said = run(tmp_path, "64MiB")
    assert said["error"].startswith("ResourceExhausted")
    for word in [f"large.{kind}", f"{SIDE} x {SIDE}", "memory=", "16 MiB"]:
        assert word in said["error"]
    assert said["peak"] < 64 * MIB


@pytest.mark.parametrize("kind", ["webp", "jpeg"])
def test_pictures_wait_for_each_other_within_memory(tmp_path, kind):
    """Each takes about 70 MB; four threads would hold four."""
    for number in range(8):
        large(tmp_path / f"{number}.{kind}", kind, 3400)
    said = run(tmp_path, "400MiB")
    assert said["error"] == ""
    # The decoders' quarter, and what else is read and kept.
    assert said["peak"] < 230 * MIB


def of_many_scans(scans: int, side: int) -> bytes:
    """A progressive JPEG that passes again and again over all blocks, for nothing."""
    out = io.BytesIO()
    Image.new("L", (side, side), 128).save(out, "JPEG", progressive=True, quality=30)
    encoded = out.getvalue()
    # The last scan, which refines AC coefficients, may be repeated by no decoder's count.
    start = encoded.rindex(b"\xff\xda")
    head = encoded.rindex(b"\xff\xc4", 0, start)
    scan = encoded[head:-2]
    return encoded[:-2] + scan * scans + b"\xff\xd9"


def test_scans_are_bounded_by_the_pixels_that_they_pass_over(tmp_path):
    (tmp_path / "many.jpg").write_bytes(of_many_scans(180, 5000))
    began = time.process_time()
    with (
        leat.Loader(tmp_path, batch_size=1, shuffle=False, ops=[DecodeImage(), Resize((32, 32))], memory="1GiB", fields=["image"]) as loader,
        pytest.raises(leat.Corrupt, match=r"many.jpg.*more than 16 scans of 5000 x 5000 pixels"),
    ):
        next(iter(loader))
    assert time.process_time() - began < 3  # Other programs have cores, too.


def test_small_pictures_may_have_many_scans(tmp_path):
    (tmp_path / "many.jpg").write_bytes(of_many_scans(100, 200))
    with leat.Loader(tmp_path, batch_size=1, shuffle=False, batch="dict", ops=[DecodeImage(layout="HWC")], fields=["image"]) as loader:
        (batch,) = loader
    assert np.asarray(batch["image"]).shape[1:3] == (200, 200)
