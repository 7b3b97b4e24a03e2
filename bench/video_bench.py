"""Clips of MP4 and WebM files, drawn at random: from a bucket, from local files, and by PyAV from local files.

    ./dev bench video [--runs 5] [--latency 20ms] [--bandwidth RATE] [--only mp4|webm] [--quick] [--json]

All deliver the same clips, compared when the time is over. Seconds are from the first batch that is asked for to the
last; datasets are open. PyAV seeks to the keyframe before a clip and decodes up to its last picture, in as many
threads as there are cores. `of_local` is the rate over that of Leat from local files; `bytes_of_groups` is what the
server sent, over the bytes of the groups of pictures that the clips touch. `gets` is the server's count.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import av
import numpy as np

import leat
import leat.testing
from measure import interleave, report, spread

WIDTH, HEIGHT, RATE, GROUP = 640, 360, 25, 50
FRAMES, SIDES = 16, (224, 224)
BATCH = 8
CODECS = {
    "mp4": ("libx264", {"preset": "veryfast"}),
    "webm": ("libvpx-vp9", {"deadline": "realtime", "cpu-used": "8", "row-mt": "1"}),
}
Way = Callable[[], "dict[str, float]"]
Clip = tuple[int, float]
"""The number of a file, and when the clip begins."""


def write(path: pathlib.Path, kind: str, seconds: int, seed: int) -> None:
    """Pictures that move, with some noise, and sound in MP4."""
    codec, options = CODECS[kind]
    rng = np.random.default_rng(seed)
    ground = np.kron(rng.integers(0, 256, (HEIGHT // 20, 2 * WIDTH // 20, 3)), np.ones((20, 20, 1))).astype(np.uint8)
    noise = np.kron(rng.integers(0, 30, (HEIGHT // 2, WIDTH, 3)), np.ones((2, 2, 1))).astype(np.uint8)
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=RATE, options=options)
        stream.width, stream.height, stream.pix_fmt, stream.gop_size = WIDTH, HEIGHT, "yuv420p", GROUP
        sound = out.add_stream("aac", rate=48000) if kind == "mp4" else None
        for number in range(seconds * RATE):
            at, other = 3 * number % WIDTH, 7 * number % WIDTH
            picture = ground[:, at : at + WIDTH] // 2 + noise[:, other : other + WIDTH]
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "rgb24")
            frame.pts = number
            out.mux(stream.encode(frame))
            if sound is not None:
                values = rng.normal(0, 0.1, (1, 48000 // RATE)).astype(np.float32)
                heard = av.AudioFrame.from_ndarray(values, "fltp", "mono")
                heard.sample_rate, heard.pts = 48000, number * 48000 // RATE
                out.mux(sound.encode(heard))
        out.mux(stream.encode(None))
        if sound is not None:
            out.mux(sound.encode(None))


def digest_of(file: int, start: float, video: np.ndarray) -> int:
    hashed = hashlib.blake2b(f"{file} {start:.3f}".encode(), digest_size=16)
    hashed.update(np.ascontiguousarray(video))
    return int.from_bytes(hashed.digest(), "little")


def read_by_leat(dataset: leat.Dataset, per_file: int) -> tuple[float, list[tuple[int, float, np.ndarray]]]:
    """The seconds, and the clips."""
    sampler = leat.SegmentSampler(dataset, per_file=per_file, seed=1)
    found = []
    with leat.Loader(dataset, sampler=sampler, batch_size=BATCH, fields=("file", "start", "video"), output="numpy",
                     batch="tuple", drop_last=False, epochs=1) as loader:  # fmt: skip
        began = time.perf_counter()
        for files, starts, videos in loader:
            found.append((files.copy(), starts.copy(), videos.copy()))
        seconds = time.perf_counter() - began
    return seconds, [each for batch in found for each in zip(*batch)]


def read_by_pyav(files: list[pathlib.Path], clips: list[Clip]) -> tuple[float, list[tuple[int, float, np.ndarray]]]:
    def one(clip: Clip) -> tuple[int, float, np.ndarray]:
        file, start = clip
        scale = av.video.reformatter.VideoReformatter()
        pictures: list[np.ndarray] = []
        with av.open(str(files[file])) as opened:
            stream = opened.streams.video[0]
            stream.thread_type, stream.codec_context.thread_count = "NONE", 1
            opened.seek(int((start + 0.001) / stream.time_base), stream=stream)
            for frame in opened.decode(stream):
                if frame.time > start - 0.001:
                    made = scale.reformat(frame, width=SIDES[1], height=SIDES[0], format="rgb24").to_ndarray()
                    pictures.append(made)
                if len(pictures) == FRAMES:
                    break
        return file, start, np.stack(pictures)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        began = time.perf_counter()
        found = list(pool.map(one, clips))
        return time.perf_counter() - began, found


def group_bytes(files: list[pathlib.Path], clips: list[Clip]) -> int:
    """Those of the groups of pictures that clips touch, as often as clips do."""
    total = 0
    for number, path in enumerate(files):
        groups: list[list[float]] = []
        with av.open(str(path)) as opened:
            for packet in opened.demux(video=0):
                if packet.size:
                    at = float(packet.pts * packet.time_base)
                    if packet.is_keyframe:
                        groups.append([at, at, 0])
                    groups[-1] = [groups[-1][0], max(groups[-1][1], at), groups[-1][2] + packet.size]
        for file, start in clips:
            if file == number:
                end = start + (FRAMES - 1) / RATE
                total += sum(int(size) for low, high, size in groups if low <= end + 0.001 and high >= start - 0.001)
    return total


class Bench:
    """The files of one container, and what is drawn of them."""

    def __init__(self, folder: pathlib.Path, kind: str, bucket: Any, per_file: int) -> None:
        self._bucket, self._kind, self._per_file = bucket, kind, per_file
        self._files = sorted(folder.iterdir())
        given = {"frames": FRAMES, "stride": 5, "size": SIDES, "drawn": True}
        options = {"endpoint_url": bucket.url, "no_sign_request": True}
        self._local = leat.Dataset.video(folder, **given)
        self._remote = leat.Dataset.video(f"s3://{kind}", storage_options=options, **given)
        chosen = list(leat.SegmentSampler(self._local, per_file=per_file, seed=1))
        columns = self._local.column("file").tolist(), self._local.column("start").tolist()
        self._clips = [(columns[0][sample], columns[1][sample]) for sample in chosen]
        self._group_bytes = group_bytes(self._files, list(set(self._clips)))
        self._digest: int | None = None

    def _rated(self, seconds: float, clips: list[tuple[int, float, np.ndarray]]) -> dict[str, float]:
        digest = sum(digest_of(int(file), float(start), video) for file, start, video in clips) % (1 << 128)
        if len(clips) != len(self._clips) or self._digest not in (None, digest):
            sys.exit(f"{self._kind}: {len(clips)} clips of {len(self._clips)}, or other ones")
        self._digest = digest
        return {"rate": len(clips) * FRAMES / seconds}

    def remote(self) -> dict[str, float]:
        self._bucket.reset_counters()
        rated = self._rated(*read_by_leat(self._remote, self._per_file))
        counted = self._bucket.counters()
        return {**rated, "gets": counted["get"], "bytes_of_groups": counted["bytes"] / self._group_bytes}

    def local(self) -> dict[str, float]:
        return self._rated(*read_by_leat(self._local, self._per_file))

    def by_pyav(self) -> dict[str, float]:
        return self._rated(*read_by_pyav(self._files, self._clips))

    def ways(self) -> dict[str, Way]:
        ways = {"leat, bucket": self.remote, "leat, local": self.local, "PyAV, local": self.by_pyav}
        return {f"{self._kind}: {name}": way for name, way in ways.items()}


def compared(found: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    rows = []
    for way, values in found.items():
        rate, mad = spread(values["rate"])
        local = spread(found[way.split(":")[0] + ": leat, local"]["rate"])[0]
        row = {"way": way, "pictures_per_s": rate, "mad": mad, "of_local": f"{rate / local:.2f}"}
        if "gets" in values:
            row["gets"] = spread(values["gets"])[0]
            row["bytes_of_groups"] = f"{spread(values['bytes_of_groups'])[0]:.3f}"
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--bandwidth", help="such as 200MB/s; default: as fast as the server is")
    parser.add_argument("--only", choices=tuple(CODECS))
    parser.add_argument("--quick", action="store_true", help="one run, few files: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    files, seconds, per_file = (2, 6, 3) if args.quick else (8, 20, 16)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    limits = {"total_bandwidth": args.bandwidth} if args.bandwidth else {}
    runs = 1 if args.quick else args.runs
    with tempfile.TemporaryDirectory(prefix="leat-video-") as folder:
        os.environ["LEAT_CACHE_DIR"] = f"{folder}/cache"
        root = pathlib.Path(folder) / "buckets"
        kinds = [args.only] if args.only else list(CODECS)
        for kind in kinds:
            (root / kind).mkdir(parents=True)
            for number in range(files):
                write(root / kind / f"{number}.{kind}", kind, seconds, number)
        ways: dict[str, Way] = {}
        with leat.testing.Bucket(root, latency=args.latency, **limits) as bucket:
            for kind in kinds:
                ways.update(Bench(root / kind, kind, bucket, per_file).ways())
            found = interleave(ways, runs)
    limit = f", {args.bandwidth}" if args.bandwidth else ""
    report(f"clips of video at {args.latency}{limit}, {runs} interleaved runs", compared(found), args.json)


if __name__ == "__main__":
    main()
