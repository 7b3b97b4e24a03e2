"""Sound where it lies: WAV and FLAC files, written and read by libsndfile as the oracle."""

from __future__ import annotations

import io
import logging
import pathlib
import pickle
import struct
import sys

import numpy as np
import pytest

import leat
from leat._formats._array._stored import Object
from leat._formats._audio import (
    _decode as _audio_decode,
    _flac as _audio_flac,
    _format as _audio_format,
    _plan as _audio_plan,
)
from small_datasets import write

MIB = 2**20
soundfile = pytest.importorskip("soundfile", reason="soundfile writes the files: pip install soundfile")
soxr = pytest.importorskip("soxr", reason="soxr resamples: pip install soxr")

KINDS = {
    "wav 8": ("WAV", "PCM_U8"), "wav 16": ("WAV", "PCM_16"), "wav 24": ("WAV", "PCM_24"), "wav 32": ("WAV", "PCM_32"),
    "wav float": ("WAV", "FLOAT"), "wav double": ("WAV", "DOUBLE"), "extensible 16": ("WAVEX", "PCM_16"),
    "extensible 24": ("WAVEX", "PCM_24"), "extensible float": ("WAVEX", "FLOAT"), "rf64 16": ("RF64", "PCM_16"),
    "flac 8": ("FLAC", "PCM_S8"), "flac 16": ("FLAC", "PCM_16"), "flac 24": ("FLAC", "PCM_24"),
}  # fmt: skip


def tones(frames: int, channels: int = 1, seed: int = 0) -> np.ndarray:
    """Some noise around some tones: (frames, channels), in float64."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames)[:, None] * rng.uniform(0.01, 0.3, channels)
    return np.clip(0.7 * np.sin(times) + rng.normal(0, 0.05, (frames, channels)), -1, 1)


def put(path: pathlib.Path, frames: int, channels: int = 1, kind: str = "wav 16", rate: int = 16000) -> np.ndarray:
    """Writes a file. Returns what soundfile reads of it: (channels, frames), float32."""
    path.parent.mkdir(parents=True, exist_ok=True)
    format, subtype = KINDS[kind]
    soundfile.write(path, tones(frames, channels, seed=frames), rate, format=format, subtype=subtype)
    return soundfile.read(path, dtype="float32", always_2d=True)[0].T


def check_all(dataset: leat.Dataset, wholes: dict[str, np.ndarray], rate: int, error: float = 0) -> None:
    """Each sample, one by one, is a part of its file, with silence behind."""
    for number in range(len(dataset)):
        found, key = dataset[number], dataset.key(number).rpartition(":")[0]
        first, whole = round(found["start"] * rate), wholes[key]
        wanted = whole[:, first : first + found["audio"].shape[1]]
        there = found.get("frames", found["audio"].shape[1])
        assert wanted.shape[1] == there and found["audio"].dtype == np.float32, dataset.key(number)
        assert np.abs(found["audio"][:, :there] - wanted).max() <= error, dataset.key(number)
        assert not found["audio"][:, there:].any()


@pytest.fixture
def folder(tmp_path, fresh_cache):
    return tmp_path


# --- The real writer, read as its own reader reads ---------------------------


@pytest.mark.parametrize("kind, channels", [(kind, 1 + number % 3) for number, kind in enumerate(KINDS)])
def test_odd_segments(folder, kind, channels):
    ending = "flac" if kind.startswith("flac") else "wav"
    sizes = [1571, 157, 7, 4096, 12289, 4097, 158]
    wholes = {f"{size}.{ending}": put(folder / f"{size}.{ending}", size, channels, kind) for size in sizes}
    # A thousand of the usual kinds.
    stride = 19 if kind in ("wav 16", "flac 16") else 211
    dataset = leat.Dataset.audio(folder, seconds=157 / 16000, stride=stride / 16000)
    assert len(dataset) == sum((size - 157) // stride + 1 for size in sizes if size >= 157)
    assert stride != 19 or len(dataset) > 1000
    check_all(dataset, wholes, 16000)
    check_all(leat.Dataset.audio(folder, seconds=1571 / 16000, rest="pad", drawn=True), wholes, 16000)


@pytest.mark.parametrize("kind", ["wav 8", "wav 16", "flac 8", "flac 16", "extensible 16"])
def test_int16_is_as_soundfile_has_it(folder, kind):
    for channels in (1, 2):
        path = folder / f"{channels}" / ("x.flac" if kind.startswith("flac") else "x.wav")
        put(path, 20011, channels, kind)
        whole = soundfile.read(path, dtype="int16", always_2d=True)[0].T
        dataset = leat.Dataset.audio(path, seconds=0.1, stride=0.07, dtype="int16")
        for number in range(len(dataset)):
            found = dataset[number]
            first = round(found["start"] * 16000)
            assert found["audio"].dtype == np.int16
            assert (found["audio"] == whole[:, first : first + 1600]).all(), number


@pytest.mark.parametrize("dtype", [np.int16, np.dtype("int16"), "<i2", "torch.int16"])
def test_types_are_taken_as_others_name_them(folder, dtype):
    put(folder / "x.wav", 2000)
    assert leat.Dataset.audio(folder, dtype=dtype)[0]["audio"].dtype == np.int16


def test_files_of_several_kinds_together(folder):
    wholes = {}
    for number, (kind, channels, rate) in enumerate(
        [("wav 16", 1, 16000), ("flac 24", 2, 44100), ("wav float", 3, 8000), ("flac 16", 1, 16000)]
    ):
        name = f"{number}.{'flac' if kind.startswith('flac') else 'wav'}"
        whole = put(folder / name, 3 * rate + 11, channels, kind, rate).mean(axis=0, keepdims=True)
        wholes[name] = whole if rate == 16000 else soxr.resample(whole.T, rate, 16000).T[:, : whole.shape[1] * 16000 // rate]
    for given in ({}, {"rest": "pad"}, {"drawn": True}):
        dataset = leat.Dataset.audio(folder, seconds=0.7, stride=0.3, rate=16000, mono=True, **given)
        assert len(dataset) == 4 * (9 if "rest" in given else 8)
        check_all(dataset, wholes, 16000, error=1e-5)


@pytest.mark.parametrize("rates", [(44100, 16000), (48000, 16000), (16000, 44100), (22050, 24000), (8000, 16001)])
def test_a_segment_is_a_part_of_the_resampled_file(folder, rates):
    rate, made = rates
    wholes = {}
    for kind, name in (("wav 16", "x.wav"), ("flac 16", "x.flac")):
        whole = put(folder / name, 5 * rate + 123, 2, kind, rate)
        wholes[name] = soxr.resample(whole.T, rate, made).T[:, : whole.shape[1] * made // rate]
    check_all(leat.Dataset.audio(folder, seconds=1, stride=0.37, rate=made, drawn=True), wholes, made, error=1e-5)


def test_whole_files(folder):
    wholes = {}
    for size in (4000, 1, 33333):
        wholes[f"{size}.flac"] = put(folder / f"{size}.flac", size, 1, "flac 16")
        wholes[f"{size}.wav"] = put(folder / f"{size}.wav", size, 1, "wav 24")
    dataset = leat.Dataset.audio(folder)
    for number in range(len(dataset)):
        assert (dataset[number]["audio"] == wholes[dataset.key(number)][0]).all()
    with leat.Loader(dataset, batch_size=6, shuffle=False, epochs=1, output="numpy", fields=("audio", "file")) as loader:
        for audio, files in loader:
            assert [len(each) for each in audio.tolist()] == [wholes[dataset.key(number)].shape[1] for number in files]
    put(folder / "y.wav", 100, 2)
    with pytest.raises(leat.InvalidArgument, match=r"y\.wav has 2 channels, and whole files come as one; give mono=True"):
        leat.Dataset.audio(folder)
    assert leat.Dataset.audio(folder, mono=True)[6]["audio"].shape == (100,)


@pytest.mark.parametrize("kind", ["wav 16", "flac 16"])
def test_files_of_several_folders(folder, kind):
    """Their names are the same, so only the place tells them apart."""
    name = f"0.{kind.split()[0]}"
    wholes = [put(folder / place / name, frames, kind=kind) for place, frames in (("a", 1600), ("b", 2400))]
    dataset = leat.Dataset.audio([folder / "a", folder / "b"], seconds=0.05)
    found = [dataset[number]["audio"] for number in range(len(dataset))]
    wanted = [whole[:, at : at + 800] for whole in wholes for at in range(0, whole.shape[1], 800)]
    assert [part.tolist() for part in found] == [part.tolist() for part in wanted]
    plain = leat.Dataset.audio([folder / "a", folder / "b"], seconds=0.05, dtype="int16")  # A WAV is not decoded.
    assert [(sample["audio"] / 32768).tolist() for sample in plain] == [part.tolist() for part in wanted]


def test_labels_of_folders(folder):
    for name in ("cat/a.wav", "cat/b.flac", "dog/a.wav"):
        put(folder / "sounds" / name, 1600, 1, "flac 16" if name.endswith("flac") else "wav 16")
    write(folder / "sounds" / "cat" / "notes.txt", b"")
    dataset = leat.Dataset.audio(folder / "sounds", seconds=0.05)
    assert dataset.classes == ["cat", "dog"] and dataset.column("label").tolist() == [0, 0, 0, 0, 1, 1]
    assert dataset.column("start").tolist() == [0, 0.05] * 3 and dataset.column("file").tolist() == [0, 0, 1, 1, 2, 2]


def chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def wav(*chunks: bytes) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


FORM = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16))


def test_chunks_around_the_sound(folder):
    values = np.arange(-500, 500, dtype="<i2")
    data = wav(chunk(b"LIST", bytes(33)), chunk(b"junk", bytes(70_001)), FORM, chunk(b"cue ", b""), chunk(b"data", values.tobytes()),
               chunk(b"id3 ", bytes(5)))  # fmt: skip
    write(folder / "x.wav", data)
    assert (soundfile.read(folder / "x.wav", dtype="int16")[0] == values).all()
    dataset = leat.Dataset.audio(folder / "x.wav", seconds=1000 / 16000, dtype="int16")
    assert (dataset[0]["audio"] == values).all()


def test_blocks_of_flac_before_the_sound(folder):
    whole = put(folder / "x.flac", 20011, 2, "flac 16")
    data = (folder / "x.flac").read_bytes()
    picture = bytes([6]) + (100_000).to_bytes(3, "big") + b"\xff\xf8" * 50_000
    tag = b"ID3\x04\0\0" + bytes([0, 0, 1, 5]) + bytes(133)
    write(folder / "x.flac", tag + data[:42] + picture + data[42:])
    check_all(leat.Dataset.audio(folder, seconds=0.1), {"x.flac": whole}, 16000)


def test_headers_of_flac_blocks_in_parts(folder, monkeypatch):
    whole = put(folder / "x.flac", 30011, 2, "flac 16")
    for size in (613, 4096, 9999):
        monkeypatch.setattr("leat._formats._audio._flac._READ_BYTES", size)
        monkeypatch.setattr("leat._formats._audio._dataset._MOST_AT_ONCE_BYTES", 0)
        check_all(leat.Dataset.audio(folder, seconds=0.3, drawn=True, refresh="always"), {"x.flac": whole}, 16000)


# --- What is read -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wav 16", "flac 16"])
def test_any_number_of_ranks_reads_each_byte_about_once(folder, serve, kind, monkeypatch):
    ending = kind.split()[0]
    for number in range(2):
        put(folder / "bucket" / f"{number}.{ending}", 48 * 48000 + number, 2, kind, 48000)
    size = sum(path.stat().st_size for path in (folder / "bucket").iterdir())
    served = serve(folder / "bucket")
    found = {}
    for world, run in ((1, 10 * MIB), (1, MIB // 2), (2, MIB // 2), (8, MIB // 2)):
        monkeypatch.setattr(_audio_plan, "_MOST_RUN_BYTES", run)
        dataset = leat.Dataset.audio(served.url, seconds=0.5, refresh="always", **served.options)
        assert len(dataset) == 192
        served.reset()
        steps, hashes = [[] for _ in range(8)], 0
        for rank in range(world):
            with leat.Loader(
                dataset, global_batch_size=24, shuffle="full" if run > MIB else True, ids=True, output="numpy", memory="1GiB",
                epochs=1, batch="dict", rank=rank, world_size=world,
            ) as loader:  # fmt: skip
                for number, batch in enumerate(loader):
                    steps[number] += batch["index"].tolist()
                    assert batch["audio"].shape == (24 // world, 2, 24000)
                hashes += int(loader.stats()[-1]["content_hash"], 16)
        found[world, run] = [sorted(step) for step in steps], hashes % 2**128
        counters = served.counters()
        if run > MIB:
            assert counters["get"] <= 1.3 * size / (8 * MIB) + 2, counters
        # Ranks read some runs together, at the ends of their lanes.
        shared = 2 * (world > 1) * world
        assert counters["get"] <= 1.3 * size / run + 2 + shared, (world, counters)
        assert counters["bytes"] <= 1.04 * size + shared * run, (world, counters)
    (_, whole), *others = found.values()
    assert all(hashes == whole for _, hashes in others)
    assert others[0] == others[1] == others[2]


@pytest.mark.parametrize("kind, seconds, most", [("wav 16", 4, 1.001), ("wav 24", 0.5, 1.001), ("flac 16", 10, 1.06), ("flac 16", 4, 1.1)])
def test_drawn_segments_read_their_bytes(folder, serve, kind, seconds, most):
    stored = 0.0
    for number in range(4):
        path = folder / "bucket" / f"{number}.{kind.split()[0]}"
        put(path, 16000 * 40 + number, 1, kind)
        stored += path.stat().st_size / (40 + number / 16000)
    served = serve(folder / "bucket")
    dataset = leat.Dataset.audio(served.url, seconds=seconds, stride=0.1, drawn=True, **served.options)
    sampler = leat.SegmentSampler(dataset, per_file=10, seed=3)
    served.reset()
    with leat.Loader(dataset, sampler=sampler, batch_size=8, fields=("audio", "start"), output="numpy", epochs=1) as loader:
        for audio, start in loader:
            assert audio.shape == (8, 1, seconds * 16000)
    counters = served.counters()
    drawn = len(set(sampler))  # Some come twice, and are still there.
    assert counters["get"] == drawn, counters
    wanted = drawn / 4 * seconds * stored
    assert counters["bytes"] <= most * wanted, counters["bytes"] / wanted


def test_draws_are_a_function_of_seed_and_epoch(folder):
    for number in range(7):
        put(folder / f"{number}.wav", 16000 * (number + 1))
    dataset = leat.Dataset.audio(folder, seconds=0.5, stride=0.01, drawn=True)
    files, starts = dataset.column("file"), dataset.column("start")

    def loader(**given) -> leat.Loader:
        return leat.Loader(
            dataset, sampler=leat.SegmentSampler(dataset, per_file=4, seed=1), global_batch_size=4, fields=("audio", "index"),
            output="numpy", **given,
        )  # fmt: skip

    epochs = []
    with loader() as whole:
        for _ in range(3):
            epochs.append([index.tolist() for _, index in whole])
    for steps in epochs:
        chosen = np.concatenate(steps)
        assert np.bincount(files[chosen]).tolist() == [4] * 7
    assert len({str(steps) for steps in epochs}) == 3
    ranks = []
    for rank in range(2):
        with loader(rank=rank, world_size=2) as part:
            ranks.append([index.tolist() for _, index in part])
    assert [one + other for one, other in zip(*ranks)] == epochs[0]
    with loader() as first:
        begun = iter(first)
        next(begun), next(begun)
        state = first.state_dict()
    with loader() as again:
        again.load_state_dict(state)
        assert [index.tolist() for _, index in again] == epochs[0][2:]
    sampler = leat.SegmentSampler(dataset, per_file=1000)
    places = starts[list(sampler)][files[list(sampler)] == 6]
    assert np.ptp(np.histogram(places, 10, (0, 6.51))[0]) < 70  # Evenly, all over the file.
    with pytest.raises(leat.InvalidArgument, match="per_file=0; it is a whole number from 1"):
        leat.SegmentSampler(dataset, per_file=0)
    with pytest.raises(leat.InvalidArgument, match=r"no column 'file'.*leat\.Dataset\.audio"):
        leat.SegmentSampler(leat.Dataset(folder / "0.wav"))


def test_headers_are_read_once(folder, serve):
    for number in range(20):
        put(folder / "bucket" / f"{number}.wav", 160_000)
    put(folder / "bucket" / "x.flac", 160_000, kind="flac 16")
    served = serve(folder / "bucket")
    first = leat.Dataset.audio(served.url, seconds=1, **served.options)
    counters = served.counters()
    assert counters["get"] <= 22 and counters["bytes"] <= 21 * 16 * 1024 + (folder / "bucket" / "x.flac").stat().st_size
    served.reset()
    again = leat.Dataset.audio(served.url, seconds=1, **served.options)
    assert served.counters()["get"] == 1 and again.digest == first.digest and len(again) == 210


def test_pickled_joined_and_selected(folder):
    for name in ("a.wav", "b.flac"):
        whole = put(folder / name, 16000, 2, "flac 16" if name == "b.flac" else "wav 16")
    dataset = leat.Dataset.audio(folder, seconds=0.25, rate=8000)
    both = pickle.loads(pickle.dumps(leat.Dataset.concat([dataset.select([7, 0]), dataset])))
    made = soxr.resample(whole.T, 16000, 8000).T
    assert np.abs(both[0]["audio"] - made[:, 6000:]).max() < 1e-5
    assert (both[1]["audio"] == both[2]["audio"]).all() and both[0]["start"] == 0.75


# --- What cannot be meant ---------------------------------------------------------


def test_what_cannot_be_meant_is_named(folder, caplog):
    put(folder / "a.wav", 16000)
    put(folder / "b.wav", 8000, rate=8000)
    put(folder / "c" / "a.wav", 16000)
    put(folder / "c" / "b.wav", 16000, 2)
    put(folder / "d" / "a.wav", 16000, kind="wav 24")
    for given, match in (
        ({"url": folder / "?.wav"}, r"b\.wav has 8000 frames a second, and a\.wav has 16000; give rate="),
        ({"url": folder / "?.wav", "seconds": 1}, r"b\.wav has 8000 frames a second"),
        ({"url": folder / "c", "seconds": 1}, r"b\.wav has 2 channels, and a\.wav has 1; give mono=True"),
        ({"url": folder / "d", "dtype": "int16"}, r"a\.wav has numbers of 24 bits, which int16 does not hold; give dtype=\"float32\""),
        ({"url": folder / "d", "seconds": 2}, r"no file has 2 s; rest=\"pad\" fills them up"),
        ({"url": folder / "d", "seconds": 0}, "seconds=0; it is a number of seconds above 0"),
        ({"url": folder / "d", "seconds": True}, "seconds=True"),
        ({"url": folder / "d", "stride": 1}, "stride= needs seconds="),
        ({"url": folder / "d", "drawn": True}, "need seconds="),
        ({"url": folder / "d", "rate": 16000.0}, "rate=16000.0; it is a whole number"),
        ({"url": folder / "d", "dtype": "int8"}, "dtype='int8'; it is float32 or int16"),
        ({"url": folder / "d", "dtype": "int16", "rate": 8000}, "rate= makes fractions"),
        ({"url": folder / "d", "rest": "keep"}, "rest='keep'"),
    ):
        with pytest.raises(leat.InvalidArgument, match=match):
            leat.Dataset.audio(**given)
    put(folder / "d" / "short.wav", 100, kind="wav 24")
    caplog.set_level(logging.WARNING, "leat")
    assert len(leat.Dataset.audio(folder / "d", seconds=0.5)) == 2
    assert "1 of 2 files are shorter than 0.5 s and left out" in caplog.text and "short.wav" in caplog.text


def test_a_missing_package_is_named(folder, monkeypatch):
    put(folder / "x.wav", 16000)
    put(folder / "x.flac", 16000, kind="flac 16")
    for name, place, given in (("soundfile", "x.flac", {}), ("soxr", "x.wav", {"rate": 8000})):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            with pytest.raises(leat.InvalidArgument, match=f"pip install {name}"):
                leat.Dataset.audio(folder / place, **given)
            assert leat.Dataset.audio(folder / "x.wav")[0]["audio"].shape == (16000,)


# --- Damage -----------------------------------------------------------------------


CUT = _audio_plan.Cut(rate=None, frames=1600, stride=1600, dtype="<f4", is_mono=False, pads=False, is_drawn=False)


def read_all(place, **given) -> list[bytes]:
    return [each["audio"].tobytes() for each in leat.Dataset.audio(place, refresh="always", **{"seconds": 0.1, **given})]


def parsed(data: bytes, name: str, cut: _audio_plan.Cut = CUT) -> bytes:
    """All segments of a file, without a store."""
    object = Object(name, len(data), b"", lambda at, length: data[at : at + length])
    sound = _audio_format.sound_of(object)
    blocks = None
    if sound.coding == "flac" and cut.frames is not None:
        blocks = _audio_flac.blocks_of(sound, object)
        sound = sound._replace(frames=int(blocks.firsts[-1]))
    count = _audio_plan.count_of(sound.frames, cut)
    if not count:
        return b""
    run, at, length = _audio_plan._run(sound, blocks, cut, 0, count, cut.frames or sound.frames, sound.frames)
    return _audio_decode.segments_of(run, data[at : at + length]).tobytes()


@pytest.mark.parametrize("kind", ["wav 16", "extensible 24", "rf64 16", "flac 16", "flac 24"])
def test_files_that_are_cut_short(folder, kind):
    path = folder / ("x.flac" if kind.startswith("flac") else "x.wav")
    put(path, 9600, 1, kind)
    whole, ends = path.read_bytes(), []
    if kind.startswith("flac"):  # Nothing but the sum of all frames tells that a block is missing.
        object = Object("x", len(whole), b"", lambda at, length: whole[at : at + length])
        ends = _audio_flac.blocks_of(_audio_format.sound_of(object), object).offsets[:-1].tolist()
        assert len(ends) == 3
    for cut in (CUT, CUT._replace(frames=None, stride=1)):
        parsed(whole, path.name, cut)
        for size in {*range(0, 200), *range(200, len(whole), len(whole) // 100), *ends, len(whole) - 1}:
            with pytest.raises(leat.Corrupt):
                parsed(whole[:size], path.name, cut)
    for size in (0, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        for given in ({}, {"seconds": None}):
            with pytest.raises(leat.Corrupt, match=path.name.replace(".", r"\.")):
                read_all(path, **given)
    path.write_bytes(whole)
    assert b"".join(read_all(path)) == parsed(whole, path.name)


def test_any_byte_of_a_flac_may_be_wrong(folder):
    put(folder / "x.flac", 9600, 2, "flac 16")
    whole = (folder / "x.flac").read_bytes()
    wanted, caught = parsed(whole, "x.flac"), 0
    begin = _audio_format.sound_of(Object("x", len(whole), b"", lambda at, length: whole[at : at + length])).begin
    for place in [*range(begin), *range(begin, len(whole), 61)]:
        spoilt = bytearray(whole)
        spoilt[place] ^= 0x11
        try:
            found = parsed(bytes(spoilt), "x.flac")
        except (leat.Corrupt, leat.InvalidArgument):
            caught += 1
        else:
            # The header has a sum of the whole sound, texts, and a rate, which nothing tells otherwise.
            assert place < begin and found == wanted, place
    assert caught >= len(range(begin, len(whole), 61))
    spoilt[begin + 2000] ^= 1
    (folder / "x.flac").write_bytes(spoilt)
    with pytest.raises(leat.Corrupt, match=r"x\.flac.*segments 0 to 5"):
        read_all(folder / "x.flac")


def test_any_byte_of_a_wav_header_may_be_wrong(folder):
    for kind, begin in (("wav 16", 44), ("extensible 24", 80), ("rf64 16", 104)):
        put(folder / "x.wav", 1600, 2, kind)
        whole, caught = (folder / "x.wav").read_bytes(), 0
        for place in range(begin):
            for flip in (0x01, 0x80, 0xFF):
                spoilt = bytearray(whole)
                spoilt[place] ^= flip
                try:
                    parsed(bytes(spoilt), "x.wav")
                except (leat.Corrupt, leat.InvalidArgument):
                    caught += 1
        assert caught > 60


def test_headers_that_lie():
    sound = bytes(3200)
    long = b"RF64\xff\xff\xff\xffWAVE" + chunk(b"ds64", struct.pack("<QQQI", 1, 1 << 63, 1, 0)) + FORM
    endless = wav(*[chunk(b"junk", bytes(40_000))] * 30, FORM, chunk(b"data", sound))
    for data, kind, match in (
        (b"", leat.Corrupt, "cut short"),
        (b"OggS" + bytes(100), leat.Corrupt, "neither a WAV nor a FLAC"),
        (b"RIFX" + bytes(100), leat.InvalidArgument, "big-endian"),
        (b"RIFF\0\0\0\0AVI " + bytes(100), leat.Corrupt, "AVI"),
        (wav(chunk(b"data", sound), FORM), leat.Corrupt, "before 'fmt '"),
        (wav(FORM), leat.Corrupt, "no chunk 'data'"),
        (wav(chunk(b"fmt ", bytes(8)), chunk(b"data", sound)), leat.Corrupt, "8 bytes"),
        (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 0, 16000, 0, 0, 16)), chunk(b"data", sound)), leat.Corrupt, "0 channels"),
        (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, 0, 0, 4, 16)), chunk(b"data", sound)), leat.Corrupt, "0 times"),
        (wav(chunk(b"fmt ", struct.pack("<HHIIHH", 7, 1, 8000, 8000, 1, 8)), chunk(b"data", sound)), leat.InvalidArgument, "mu-law"),
        (wav(FORM, b"data\xff\xff\xff\xff" + sound), leat.InvalidArgument, "pipe"),
        (wav(FORM, b"data\xff\xff\xff\x7f" + sound), leat.Corrupt, "cut short"),
        (long + b"data\xff\xff\xff\xff" + sound, leat.Corrupt, "cut short"),
        (wav(FORM, b"junk\xfe\xff\xff\xff" + sound), leat.Corrupt, "cut short"),
        (b"fLaC\x80\0\0\x22" + bytes(34), leat.Corrupt, "blocks of 0"),
        (b"fLaC\x84\0\0\x22" + bytes(34), leat.Corrupt, "STREAMINFO"),
        (b"fLaC\0\0\0\x22\x10\0\x10\0" + bytes(6) + b"\x03\xe8\0\xf0" + bytes(20) + b"\1\xff\xff\xff", leat.Corrupt, "cut short"),
        (b"fLaC\x80\0\0\x22\x10\0\x10\0" + bytes(6) + b"\x03\xe8\0\xff\xff\xff\xff\xff" + bytes(16), leat.Corrupt, "cut short"),
    ):  # fmt: skip
        with pytest.raises(kind, match=match) as error:
            parsed(data, "x.wav")
        assert str(error.value).startswith("x.wav: ")
    assert len(parsed(endless, "x.wav")) == 6400
    many = wav(*[chunk(b"junk", bytes(20_000))] * 1100, FORM, chunk(b"data", sound))
    with pytest.raises(leat.Corrupt, match="over 1000 parts"):
        parsed(many, "x.wav")


def test_a_segment_that_is_too_long_is_named(folder, monkeypatch):
    put(folder / "x.wav", 16000)
    monkeypatch.setattr(_audio_plan, "_MOST_WHOLE_BYTES", 1000)
    with pytest.raises(leat.InvalidArgument, match=r"x\.wav: a segment of 1 s has .* GiB, and is held whole; give fewer"):
        leat.Dataset.audio(folder, seconds=1)


def test_a_changed_file_is_noticed(folder, serve):
    put(folder / "bucket" / "x.flac", 16000 * 5, kind="flac 16")
    served = serve(folder / "bucket")
    dataset = leat.Dataset.audio(served.url, seconds=1, **served.options)
    put(folder / "bucket" / "x.flac", 16000 * 5 + 1, kind="flac 16")
    with pytest.raises(leat.Corrupt, match=r"x\.flac"):
        dataset[0]


def test_a_changed_file_among_files_of_another_kind_is_noticed(folder, serve):
    """One is read as it is, and what is read of the other is made."""
    mono = put(folder / "bucket" / "a.wav", 16000, kind="wav float")
    put(folder / "bucket" / "b.wav", 16000, channels=2, kind="wav float")
    served = serve(folder / "bucket")
    dataset = leat.Dataset.audio(served.url, seconds=0.5, mono=True, **served.options)
    assert (np.concatenate([dataset[0]["audio"], dataset[1]["audio"]], axis=1) == mono).all()
    dataset = leat.Dataset.audio(served.url, seconds=0.5, mono=True, **served.options)  # Which holds nothing.
    written = bytearray((folder / "bucket" / "a.wav").read_bytes())
    written[-4:] = bytes(4)  # As long as it was.
    write(folder / "bucket" / "a.wav", bytes(written))
    with pytest.raises(leat.Corrupt, match=r"a\.wav"):
        dataset[1]


def test_silence_between_two_segments(folder):
    whole = put(folder / "x.wav", 5000)
    found = leat.Dataset.audio(folder, seconds=0.1, stride=0.2, rest="pad")  # 1600 of each 3200 frames.
    assert found.column("frames").tolist() == [1600, 1600]
    check_all(found, {"x.wav": whole}, 16000)
    assert io.BytesIO(found[1]["audio"].tobytes()).getbuffer().nbytes == 6400
