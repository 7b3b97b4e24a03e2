"""Video where it lies: MP4 and WebM files, written and read by PyAV as the oracle."""

from __future__ import annotations

import logging
import pathlib
import pickle
import struct
import sys
from fractions import Fraction

import numpy as np
import pytest

import leat
from leat._formats._array._stored import Object
from leat._formats._video import (
    _decode as _video_decode,
    _format as _video_format,
    _plan as _video_plan,
    _webm as _video_webm,
)
from small_datasets import write

av = pytest.importorskip("av", reason="PyAV writes the files: pip install av")
av.logging.set_level(None)

KINDS = {
    "h264.mp4": "libx264", "hevc.mp4": "libx265", "mpeg4.mp4": "mpeg4", "vp9.mp4": "libvpx-vp9", "av1.mp4": "libsvtav1",
    "h264.mov": "libx264", "vp8.webm": "libvpx", "vp9.webm": "libvpx-vp9", "av1.webm": "libsvtav1",
    "h264.mkv": "libx264", "hevc.mkv": "libx265",
}  # fmt: skip
OPTIONS = {
    "libx265": {"x265-params": "log-level=none:keyint=12:open-gop=1"},
    "libsvtav1": {"preset": "12", "svtav1-params": "keyint=12"},
    "libvpx": {"deadline": "realtime", "auto-alt-ref": "1", "lag-in-frames": "8"}, "mpeg4": {"bf": "2"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8"}, "libx264": {"preset": "fast"},
}  # fmt: skip


def picture(number: int, width: int, height: int) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width]
    noise = np.random.default_rng(number).integers(0, 40, (height, width))
    parts = [x * 3 + number * 9 + noise, y * 4 + number * 5, x + y + number * 7]
    return np.stack(parts, axis=2).astype(np.uint8)


def put(path: pathlib.Path, frames: int = 50, width: int = 64, height: int = 48, rate: int = 25, times=None,
        gop: int = 12, codec: str = "", has_sound: bool = False, **container) -> pathlib.Path:  # fmt: skip
    """Writes a file. `times`: in ms, of each picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    codec = codec or KINDS.get(path.name, "libx264")
    with av.open(str(path), "w", options=container) as out:
        stream = out.add_stream(codec, rate=rate, options=OPTIONS[codec])
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = width, height, "yuv420p", gop
        sound = out.add_stream("aac", rate=48000) if has_sound else None
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number, width, height), "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, rate)
            if times is not None:
                frame.pts, frame.time_base = int(times[number]), Fraction(1, 1000)
            out.mux(stream.encode(frame))
            if sound is not None:
                tone = av.AudioFrame.from_ndarray(np.zeros((1, 48000 // rate), np.float32), "fltp", "mono")
                tone.sample_rate, tone.pts = 48000, number * (48000 // rate)
                out.mux(sound.encode(tone))
        out.mux(stream.encode(None))
        if sound is not None:
            out.mux(sound.encode(None))
    return path


def read(path: pathlib.Path, **given) -> tuple[np.ndarray, np.ndarray]:
    """The times of all pictures, and the pictures, as PyAV reads them."""
    with av.open(str(path)) as file:
        found = [(frame.time, frame.to_ndarray(format="rgb24", **given)) for frame in file.decode(video=0)]
    found.sort(key=lambda each: each[0])
    return np.array([each for each, _ in found]), np.stack([each for _, each in found])


def check_all(dataset: leat.Dataset, path: pathlib.Path, frames: int, step: int, stride: int, **given) -> None:
    times, whole = read(path, **given)
    assert len(dataset) == (len(whole) - (frames - 1) * step - 1) // stride + 1
    for number in range(len(dataset)):
        found, first = dataset[number], number * stride
        assert found["video"].dtype == np.uint8 and abs(found["start"] - times[first]) < 1e-6, number
        assert np.array_equal(found["video"], whole[first : first + (frames - 1) * step + 1 : step]), number


@pytest.fixture
def folder(tmp_path, fresh_cache):
    return tmp_path


# --- The real writer, read as its own reader reads ---------------------------


@pytest.mark.parametrize("name", KINDS)
def test_odd_clips(folder, name):
    path = put(folder / name, frames=31, width=50, height=34)
    check_all(leat.Dataset.video(path, frames=4, step=2, stride=3), path, 4, 2, 3)
    check_all(leat.Dataset.video(path, frames=3, stride=4, drawn=True), path, 3, 1, 4)


def test_a_thousand_odd_clips(folder):
    for number, size in enumerate([(64, 48), (66, 34), (50, 90)]):
        put(folder / f"{number}.mp4", 130, *size, gop=9 + number * 20, has_sound=number == 1)
    checked = 0
    for number, (frames, step, stride) in enumerate([(1, 1, 1), (2, 1, 1), (5, 3, 1)]):
        dataset = leat.Dataset.video(folder / f"{number}.mp4", frames=frames, step=step, stride=stride)
        check_all(dataset, folder / f"{number}.mp4", frames, step, stride)
        checked += len(dataset)
    dataset = leat.Dataset.video(folder, frames=4, stride=1, size=(40, 24))
    wholes = [read(folder / f"{number}.mp4", width=24, height=40, interpolation="BILINEAR")[1] for number in range(3)]
    for number in range(len(dataset)):
        found = dataset[number]
        first = int(dataset.key(number).rpartition(":")[2])
        assert np.array_equal(found["video"], wholes[found["file"]][first : first + 4]), number
    assert checked + len(dataset) > 700


def at_times(path: pathlib.Path, fps: float) -> np.ndarray:
    """The picture that is shown at each j / fps."""
    times, whole = read(path)
    end = 2 * times[-1] - times[-2]
    wanted = times[0] + np.arange(int(np.ceil((end - times[0]) * fps - 1e-6))) / fps
    return whole[np.searchsorted(times, wanted + 6e-4, "right") - 1]


@pytest.mark.parametrize(
    "name, fps",
    [("h264.mp4", 10), ("h264.mp4", 60), ("vp9.webm", 25), ("vp9.webm", 7.5), ("vp8.webm", 10), ("h264.mkv", 25)],
)
def test_pictures_by_time(folder, name, fps):
    path = put(folder / name, frames=40)
    wanted = at_times(path, fps)
    dataset = leat.Dataset.video(path, frames=3, fps=fps, stride=2)
    assert len(dataset) in ((len(wanted) - 3) // 2 + 1, (len(wanted) - 4) // 2 + 1)
    for number in range(len(dataset)):
        found = dataset[number]
        assert np.array_equal(found["video"], wanted[2 * number : 2 * number + 3]), number
        assert abs(found["start"] - 2 * number / fps) < 6e-4


@pytest.mark.parametrize("name", ["h264.mp4", "vp9.webm"])
def test_times_that_vary(folder, name):
    gaps = np.random.default_rng(3).integers(5, 200, 40)
    path = put(folder / name, frames=40, times=np.cumsum(gaps) - gaps[0], gop=8)
    check_all(leat.Dataset.video(path, frames=4, stride=3), path, 4, 1, 3)
    times, whole = read(path)
    dataset = leat.Dataset.video(path, frames=5, fps=8)
    for number in range(len(dataset)):
        wanted = times[0] + (5 * number + np.arange(5)) / 8
        places = np.searchsorted(times, wanted + 6e-4, "right") - 1
        assert np.array_equal(dataset[number]["video"], whole[places]), number
    assert len(dataset) == int((times[-1] * 8 + 1) // 5)


def boxes(data: bytes, *path: bytes) -> int:
    """The place of the content of a box."""
    at, end = 0, len(data)
    for kind in path:
        while data[at + 4 : at + 8] != kind:
            at += int.from_bytes(data[at : at + 4], "big")
            assert at < end, kind
        end = at + int.from_bytes(data[at : at + 4], "big")
        at += 8
    return at


def test_pictures_that_are_turned(folder):
    path = put(folder / "x.mp4", frames=20)
    data = bytearray(path.read_bytes())
    whole = read(path)[1]
    at = boxes(data, b"moov", b"trak", b"tkhd") + 40
    for matrix, turns in (((0, 1, -1, 0), -1), ((-1, 0, 0, -1), 2), ((0, -1, 1, 0), 1)):
        a, b, c, d = (number * 65536 for number in matrix)
        data[at : at + 20] = struct.pack(">5i", a, b, 0, c, d)
        path.write_bytes(data)
        dataset = leat.Dataset.video(path, frames=20)
        assert np.array_equal(dataset[0]["video"], np.rot90(whole, turns, axes=(1, 2))), matrix
        assert leat.Dataset.video(path, frames=20, size=(30, 20))[0]["video"].shape == (20, 30, 20, 3)
    data[at : at + 20] = struct.pack(">5i", -65536, 0, 0, 0, 65536)
    path.write_bytes(data)
    with pytest.raises(leat.InvalidArgument, match=r"x\.mp4: it is shown mirrored"):
        leat.Dataset.video(path, frames=20)


def test_edit_lists(folder):
    path = put(folder / "x.mp4", frames=40)
    data = bytearray(path.read_bytes())
    at = boxes(data, b"moov", b"trak", b"edts", b"elst") + 8
    duration, begin, rate = struct.unpack(">Iii", data[at : at + 12])
    _, whole = read(path)
    data[at : at + 12] = struct.pack(">Iii", 800, begin + 512 * 7, rate)  # 20 pictures from the eighth on.
    path.write_bytes(data)
    assert np.array_equal(read(path)[1][:20], whole[7:27])
    dataset = leat.Dataset.video(path, frames=4)
    assert len(dataset) == 5 and dataset.column("start").tolist() == pytest.approx([0, 0.16, 0.32, 0.48, 0.64])
    for number in range(5):
        assert np.array_equal(dataset[number]["video"], whole[7 + 4 * number : 11 + 4 * number])
    data[at + 8 : at + 12] = struct.pack(">i", 2 * 65536)
    path.write_bytes(data)
    with pytest.raises(leat.InvalidArgument, match=r"x\.mp4: its edit list"):
        leat.Dataset.video(path, frames=4)


def test_clusters_of_unknown_size_and_without_cues(folder):
    for name, given in (("vp9.webm", {"live": "1"}), ("h264.mkv", {"live": "1"}), ("av1.webm", {"dash": "1"})):
        path = put(folder / name, frames=40, **given)
        check_all(leat.Dataset.video(path, frames=6, stride=5), path, 6, 1, 5)
        assert len(leat.Dataset.video(path, frames=6, fps=25)) == 6


def test_labels_of_folders(folder):
    for name in ("cat/a.mp4", "cat/b.mp4", "dog/a.mp4"):
        put(folder / "videos" / name, frames=10)
    write(folder / "videos" / "cat" / "notes.txt", b"")
    dataset = leat.Dataset.video(folder / "videos", frames=5)
    assert dataset.classes == ["cat", "dog"] and dataset.column("label").tolist() == [0, 0, 0, 0, 1, 1]
    assert dataset.column("start").tolist() == [0, 0.2] * 3 and dataset.column("file").tolist() == [0, 0, 1, 1, 2, 2]
    both = pickle.loads(pickle.dumps(leat.Dataset.concat([dataset.select([5, 0]), dataset])))
    assert np.array_equal(both[0]["video"], dataset[5]["video"]) and both[1]["start"] == 0


# --- What is read -------------------------------------------------------------


def groups(path: pathlib.Path) -> list[tuple[float, float, int]]:
    """Groups of pictures: when each begins and ends, and its bytes."""
    with av.open(str(path)) as file:
        found = [each for each in file.demux(video=0) if each.size]
    made: list[list] = []
    for each in found:
        time, size = float(each.pts * each.time_base), each.size
        if each.is_keyframe:
            made.append([time, time, 0])
        made[-1][1] = max(made[-1][1], time)
        made[-1][2] += size
    return [tuple(each) for each in made]


@pytest.mark.parametrize("name, fps", [("h264.mp4", None), ("h264.mp4", 10), ("vp9.webm", 10)])
def test_drawn_clips_read_their_groups(folder, serve, name, fps):
    ending = name.split(".")[1]
    for number in range(3):
        put(folder / "bucket" / f"{number}.{ending}", 200, 160, 120, codec=KINDS[name], has_sound=ending == "mp4")
    served = serve(folder / "bucket")
    dataset = leat.Dataset.video(served.url, frames=8, fps=fps, stride=3, drawn=True, **served.options)
    sampler = leat.SegmentSampler(dataset, per_file=6, seed=3)
    drawn = set(sampler)
    served.reset()
    usual = {"fields": ("video", "start"), "output": "numpy", "epochs": 1}
    with leat.Loader(dataset, sampler=sampler, batch_size=6, **usual) as loader:
        for video, _ in loader:
            assert video.shape == (6, 8, 120, 160, 3)
    counters, needed = served.counters(), 0
    for sample in drawn:
        start, file = dataset[sample]["start"], dataset[sample]["file"]
        end = start + 7 / (fps or 25)
        found = groups(folder / "bucket" / f"{file}.{ending}")
        needed += sum(size for low, high, size in found if low <= end and high >= start)
    assert counters["get"] == len(drawn)
    assert counters["bytes"] <= 1.3 * needed, counters["bytes"] / needed


def test_any_number_of_ranks_reads_the_same(folder, serve):
    for number in range(4):
        put(folder / "bucket" / f"{number}.mp4", 120, gop=20)
    served = serve(folder / "bucket")
    dataset = leat.Dataset.video(served.url, frames=4, **served.options)
    assert len(dataset) == 120
    found = {}
    for world in (1, 2, 8):
        steps, hashes = [[] for _ in range(15)], 0
        served.reset()
        for rank in range(world):
            with leat.Loader(
                dataset, global_batch_size=8, shuffle=True, ids=True, output="numpy", epochs=1, batch="dict", rank=rank,
                world_size=world,
            ) as loader:  # fmt: skip
                for number, batch in enumerate(loader):
                    steps[number] += batch["index"].tolist()
                    assert batch["video"].shape == (8 // world, 4, 48, 64, 3)
                hashes += int(loader.stats()[-1]["content_hash"], 16)
        found[world] = [sorted(step) for step in steps], hashes % 2**128
        # A file is one run; ranks read some together, at the ends of their lanes.
        assert served.counters()["get"] <= 4 + 2 * (world > 1) * world, world
    assert found[1] == found[2] == found[8]


def test_draws_go_on_after_a_resume(folder):
    for number in range(3):
        put(folder / f"{number}.mp4", 60)
    dataset = leat.Dataset.video(folder, frames=4, stride=1, drawn=True)

    def loader(**given) -> leat.Loader:
        return leat.Loader(
            dataset, sampler=leat.SegmentSampler(dataset, per_file=4, seed=1), global_batch_size=4,
            fields=("index", "video"), output="numpy", **given,
        )  # fmt: skip

    with loader() as whole:
        epochs = [[index.tolist() for index, _ in whole] for _ in range(2)]
    assert epochs[0] != epochs[1]
    with loader() as first:
        begun = iter(first)
        next(begun)
        state = first.state_dict()
    with loader() as again:
        again.load_state_dict(state)
        assert [index.tolist() for index, _ in again] == epochs[0][1:]


def test_indexes_are_read_once(folder, serve):
    large = put(folder / "bucket" / "a.mp4", 150, 320, 240)  # Its index lies at its end.
    put(folder / "bucket" / "b.mp4", 150, 320, 240, movflags="faststart")
    put(folder / "bucket" / "c.webm", 150, 320, 240, codec="libvpx-vp9")
    served = serve(folder / "bucket")
    given = {"frames": 8, "fps": 12.5, "size": (32, 32), **served.options}
    first = leat.Dataset.video(served.url, **given)
    counters = served.counters()
    assert large.stat().st_size > 100_000
    assert counters["get"] <= 2 + 1 + 2 and counters["bytes"] <= 6 * 16 * 1024, counters
    served.reset()
    again = leat.Dataset.video(served.url, **given)
    assert served.counters()["get"] == 0 and again.digest == first.digest


def test_what_lies_between_is_read_if_it_is_little():
    sizes = np.array([100, 100, 100, 100])
    ranges, places = _video_plan._ranges(np.array([1000, 1100, 1230, 5000]), sizes)
    assert ranges == [(1000, 330), (5000, 100)] and places.tolist() == [0, 100, 230, 330]
    ranges, places = _video_plan._ranges(np.array([5000, 1100, 1000, 1230]), sizes)
    assert ranges == [(1000, 330), (5000, 100)] and places.tolist() == [330, 100, 0, 230]
    assert _video_plan._ranges(np.array([7]), np.array([3]))[0] == [(7, 3)]
    numbers = np.array([5, -3, 1 << 61, 0])
    assert _video_decode.unpacked(_video_decode.packed(numbers)).tolist() == numbers.tolist()


# --- What cannot be meant ---------------------------------------------------------


def test_what_cannot_be_meant_is_named(folder, caplog):
    put(folder / "a.mp4", 20)
    put(folder / "b.mp4", 20, 32, 32)
    put(folder / "c" / "x.mp4", 20, movflags="frag_keyframe+empty_moov")
    with av.open(str(folder / "prores.mov"), "w") as out:
        stream = out.add_stream("prores_ks", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv422p10le"
        out.mux(stream.encode(av.VideoFrame.from_ndarray(picture(0, 64, 48), "rgb24")))
        out.mux(stream.encode(None))
    for given, match in (
        ({"url": folder / "?.mp4"}, r"b\.mp4 has pictures of 32 x 32 .*a\.mp4 of 48 x 64; give size="),
        ({"url": folder / "c"}, r"x\.mp4: its index is spread over the file \(a fragmented MP4\)"),
        ({"url": folder / "prores.mov"}, r"prores\.mov: its pictures are stored as 'apch', and Leat reads H\.264"),
        ({"url": folder / "a.mp4", "frames": 21}, "no sample is there: no file has 21 frames"),
        ({"url": folder / "a.mp4", "frames": 9, "fps": 8.0}, r"no file has 9 frames at fps=8\.0"),
        ({"url": folder / "a.mp4", "frames": 0}, "frames=0; it is a whole number from 1"),
        ({"url": folder / "a.mp4", "frames": True}, "frames=True"),
        ({"url": folder / "a.mp4", "step": 0}, "step=0"),
        ({"url": folder / "a.mp4", "stride": 1.5}, r"stride=1\.5"),
        ({"url": folder / "a.mp4", "fps": float("nan")}, "fps=nan; it is a number of pictures a second"),
        ({"url": folder / "a.mp4", "size": 224}, "size=224; it is a height and a width"),
        ({"url": folder / "a.mp4", "size": (20000, 2)}, "size="),
    ):
        with pytest.raises(leat.InvalidArgument, match=match):
            leat.Dataset.video(**{"frames": 4, **given})
    caplog.set_level(logging.WARNING, "leat")
    put(folder / "d" / "a.mp4", 30)
    put(folder / "d" / "short.mp4", 5)
    assert len(leat.Dataset.video(folder / "d", frames=10)) == 3
    assert "1 of 2 files have less than 10 frames and are left out" in caplog.text and "short.mp4" in caplog.text


def test_a_missing_package_is_named(folder, monkeypatch):
    put(folder / "x.mp4", 10)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(leat.InvalidArgument, match="pip install av"):
        leat.Dataset.video(folder, frames=4)


def test_a_clip_that_is_too_long_is_named(folder, monkeypatch):
    put(folder / "x.mp4", 10)
    monkeypatch.setattr(_video_plan, "_MOST_WHOLE_BYTES", 1000)
    with pytest.raises(leat.InvalidArgument, match=r"x\.mp4: a clip of 4 frames has .* GiB as it is made, and is held"):
        leat.Dataset.video(folder, frames=4)


# --- Damage -----------------------------------------------------------------------


def object_of(data: bytes, name: str) -> Object:
    return Object(name, len(data), b"", lambda at, length: data[at : at + length])


def parsed(data: bytes, name: str, fps=None, frames: int = 4) -> list[bytes]:
    """All clips of a file, without a store."""
    cut = _video_plan.Cut(frames=frames, fps=fps, step=1, stride=frames, sides=None, is_drawn=True)
    movie = _video_format.movie_of(object_of(data, name), fps is not None)
    plan = _video_plan.plan_of(movie, cut)
    found = []
    for first in range(0, plan.pictures - frames + 1, frames):
        run, ranges = plan.run(cut, first, 1)
        assert all(0 <= at and at + length <= len(data) for at, length in ranges)
        found.append(_video_decode.clips_of(run, b"".join(data[at : at + length] for at, length in ranges)).tobytes())
    return found


@pytest.mark.parametrize(
    "name, fps", [("h264.mp4", None), ("vp9.webm", None), ("vp9.webm", 25), ("faststart.mp4", None)]
)
def test_files_that_are_cut_short(folder, name, fps):
    given = {"movflags": "faststart"} if name == "faststart.mp4" else {}
    path = put(folder / name, 24, **given)
    whole = path.read_bytes()
    assert len(parsed(whole, name, fps)) == 6
    for size in {*range(0, 300, 7), *range(300, len(whole), len(whole) // 20), len(whole) - 1}:
        with pytest.raises(leat.Corrupt, match=name.replace(".", r"\.")):
            parsed(whole[:size], name, fps)
    path.write_bytes(whole[:-1])
    with pytest.raises(leat.Corrupt, match=name.replace(".", r"\.")):
        leat.Dataset.video(path, frames=4, fps=fps)


@pytest.mark.parametrize(
    "name, fps", [("h264.mp4", None), ("mpeg4.mp4", None), ("vp9.webm", None), ("vp9.webm", 25), ("av1.mp4", None)]
)
def test_any_byte_may_be_wrong(folder, name, fps):
    whole = put(folder / name, 8, 48, 32, gop=4).read_bytes()
    rng = np.random.default_rng(1)
    is_mp4 = name.endswith("mp4")
    # Each byte of one of them, and some of the others.
    some = 1 if name in ("h264.mp4", "vp9.webm") else 5
    index = range(whole.index(b"moov") - 4, len(whole), some) if is_mp4 else range(0, 500, some)
    caught = 0
    for place in [*index, *rng.integers(0, len(whole), 30).tolist()]:
        spoilt = bytearray(whole)
        spoilt[place] ^= int(rng.choice([0x01, 0x10, 0x80, 0xFF]))
        try:
            parsed(bytes(spoilt), name, fps)
        except (leat.Corrupt, leat.InvalidArgument) as error:
            caught += 1
            assert "Traceback" not in str(error)
    assert caught > len(index) // 5


def box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(data), kind) + data


def test_indexes_that_lie(folder):
    whole = put(folder / "x.mp4", 24).read_bytes()
    stbl = (b"moov", b"trak", b"mdia", b"minf", b"stbl")

    def spoilt(path: tuple[bytes, ...], at: int, *numbers: int) -> bytes:
        data = bytearray(whole)
        place = boxes(data, *path) + at
        data[place : place + 4 * len(numbers)] = struct.pack(f">{len(numbers)}I", *numbers)
        return bytes(data)

    for data, kind, match in (
        (b"", leat.Corrupt, "cut short"),
        (b"\0\0\0\x18ftyp" + bytes(16), leat.Corrupt, "no index"),
        (b"GIF89a" + bytes(100), leat.Corrupt, "neither an MP4 nor a WebM"),
        (b"\x1aE\xdf\xa3\x84" + bytes(100), leat.Corrupt, "no element is at byte|no segment"),
        (box(b"ftyp", b"isom") + box(b"moov", b""), leat.InvalidArgument, "no track of pictures"),
        (spoilt((*stbl, b"stsz"), 8, 1 << 31), leat.Corrupt, "entries"),
        (spoilt((*stbl, b"stsz"), 4, 1, 1 << 31), leat.Corrupt, "pictures of 1 bytes"),
        (spoilt((*stbl, b"stsz"), 8, 25), leat.Corrupt, "box 'stsz' has"),
        (spoilt((*stbl, b"stsz"), 12, 1 << 31), leat.Corrupt, "cut short"),
        (spoilt((*stbl, b"stts"), 8, 23), leat.Corrupt, "for 23 pictures, and there are 24"),
        (spoilt((*stbl, b"stco"), 8, 0xFFFFFFF0), leat.Corrupt, "cut short"),
        (spoilt((*stbl, b"stsc"), 8, 2), leat.Corrupt, "chunks"),
        (spoilt((*stbl, b"stss"), 8, 25), leat.Corrupt, "list of keyframes"),
        (spoilt((b"moov", b"trak", b"mdia", b"mdhd"), 12, 0), leat.Corrupt, "0 ticks"),
        (spoilt((*stbl, b"stsd"), 8 + 32, 0), leat.Corrupt, "pictures of 0 x 0"),
        (spoilt((b"moov",), 4, 0x6D766578), leat.InvalidArgument, "fragmented"),
    ):  # fmt: skip
        with pytest.raises(kind, match=match) as error:
            parsed(data, "x.mp4")
        assert str(error.value).startswith("x.mp4: ")


def test_cues_that_lie(folder):
    whole = put(folder / "vp9.webm", 24).read_bytes()
    movie = _video_format.movie_of(object_of(whole, "x.webm"), True)
    assert isinstance(movie.places, _video_format.Cues) and len(movie.places.times) == 2
    at = whole.index(_video_webm.CUES.to_bytes(4, "big"), 500)
    cluster = whole.index(_video_webm.CUE_CLUSTER.to_bytes(1, "big"), at)
    spoilt = bytearray(whole)
    spoilt[cluster + 2] ^= 0x01
    with pytest.raises(leat.Corrupt, match="no cluster begins|name a cluster|no size|no element"):
        parsed(bytes(spoilt), "x.webm", 25)


def test_a_changed_file_is_noticed(folder, serve):
    put(folder / "bucket" / "x.mp4", 20)
    served = serve(folder / "bucket")
    dataset = leat.Dataset.video(served.url, frames=4, **served.options)
    put(folder / "bucket" / "x.mp4", 21)
    with pytest.raises(leat.Corrupt, match=r"x\.mp4"):
        dataset[0]
    again = leat.Dataset.video(served.url, frames=4, **served.options)
    assert len(again) == 5 and again[0]["video"].shape == (4, 48, 64, 3)


def test_a_damaged_picture_is_named(folder):
    path = put(folder / "x.mp4", 24)
    data = bytearray(path.read_bytes())
    at = data.index(b"mdat") + 800
    data[at : at + 400] = bytes(400)
    path.write_bytes(data)
    with pytest.raises(leat.Corrupt, match=r"x\.mp4: clips 0 to 5: H\.264"):
        leat.Dataset.video(path, frames=4)[0]
