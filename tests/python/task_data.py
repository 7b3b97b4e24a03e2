"""Small datasets in one bucket, s3://data, for the scripts of examples/tasks."""

from __future__ import annotations

import io
import json
import pathlib
import sys
import wave

import numpy as np
import pyarrow as pa
from PIL import Image
from pyarrow import parquet

from small_datasets import CLASSES, encoded, tar_of, write

TRAIN, VAL = 85, 31  # Numbers that no batch divides.
SIDE = (40, 48)  # Height and width.
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0] + [0] * (256 * 3 - 12)


def photograph(number: int, kind: int, size: tuple[int, int] = SIDE) -> np.ndarray:
    """Noise in which the channel of its class is bright: (H, W, 3), uint8."""
    pixels = np.random.default_rng(number).integers(0, 120, (*size, 3), dtype=np.uint8)
    pixels[..., kind] += 120
    return pixels


def make(folder: pathlib.Path) -> None:
    """Makes all of them below ``folder``, which is to be served as the bucket."""
    make_photographs(folder / "photos" / "train", TRAIN)
    make_photographs(folder / "photos" / "val", VAL)
    make_photographs(folder / "wild", TRAIN, varies=True)
    make_photographs(folder / "night", 20, classes=("cat", "dog"))
    (folder / "photos" / "train" / "README.md").write_text("Photographs of animals.\n")
    make_tables(folder)
    make_masks(folder / "voc")
    make_shards(folder / "boxes")
    make_depths(folder / "depth")
    make_speech(folder / "speech")
    make_hub(folder / "hub")
    sizes = [(path, SIDE[0] + int(path.stem) % 7, SIDE[1] + int(path.stem) % 5) for path in sorted((folder / "wild").rglob("*.jpg"))]
    rows = [f"{path.relative_to(folder).as_posix()},{height},{width}" for path, height, width in sizes]
    (folder / "wild.csv").write_text("\n".join(["path,height,width", *rows]) + "\n")
    tokens = (np.cumsum(np.random.default_rng(0).choice([3, 7], 20_000, p=[0.9, 0.1])) % 256).astype("<u2")
    write(folder / "corpus" / "train.bin", tokens.tobytes())


def make_photographs(folder: pathlib.Path, count: int, *, varies: bool = False, classes=CLASSES) -> None:
    for number in range(count):
        kind = number % len(classes)
        size = (SIDE[0] + number % 7 * varies, SIDE[1] + number % 5 * varies)
        data = encoded(photograph(number, kind, size), "JPEG", quality=95)
        write(folder / classes[kind] / f"{number:04}.jpg", data)


def make_tables(folder: pathlib.Path) -> None:
    keys = sorted(path.relative_to(folder).as_posix() for path in (folder / "photos" / "train").rglob("*.jpg"))
    rows = [f'{key},"[{i % 2}, {i % 3 // 2}, 1]",{i / 10}' for i, key in enumerate(keys)]
    (folder / "tags.csv").write_text("\n".join(["path,tags,age", *rows]) + "\n")
    captions = [{"path": key, "caption": f"a photograph of a {key.split('/')[2]}"} for key in keys]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, captions)) + "\n")


def make_masks(folder: pathlib.Path, count: int = 40) -> None:
    """Photographs whose bright half their mask calls 1, 2 or 3; indices of a palette, as VOC has them."""
    rows = ["image,mask"]
    for number in range(count):
        kind = number % 3
        labels = np.zeros(SIDE, np.uint8)
        labels[:, : 12 + number % 24] = kind + 1
        pixels = np.where(labels[..., None] > 0, photograph(number, kind), 0).astype(np.uint8)
        write(folder / "images" / f"{number:04}.jpg", encoded(pixels, "JPEG", quality=95))
        mask = Image.fromarray(labels, "P")
        mask.putpalette(PALETTE)
        out = io.BytesIO()
        mask.save(out, "PNG")
        write(folder / "masks" / f"{number:04}.png", out.getvalue())
        rows.append(f"images/{number:04}.jpg,masks/{number:04}.png")
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")


def make_hub(folder: pathlib.Path, rows: int = 60) -> None:
    """Parquet files of photographs and their classes, as the library datasets writes them."""
    folder.mkdir(parents=True)
    told = json.dumps({"info": {"features": {"label": {"names": list(CLASSES), "_type": "ClassLabel"}}}})
    for number in range(2):
        some = range(number * rows // 2, (number + 1) * rows // 2)
        images = [{"bytes": encoded(photograph(row, row % 3), "JPEG", quality=95), "path": f"{row}.jpg"} for row in some]
        table = pa.table({"image": images, "label": [row % 3 for row in some]})
        table = table.replace_schema_metadata({"huggingface": told})
        parquet.write_table(table, folder / f"train-{number:05}-of-00002.parquet", row_group_size=10)


def make_shards(folder: pathlib.Path, samples: int = 60) -> None:
    """Tar shards: a photograph, its class, its boxes and its keypoints, as JSON."""
    for start in range(0, samples, 20):
        members = []
        for number in range(start, start + 20):
            boxes = [[4 * i, 5, 4 * i + 16, 30] for i in range(1 + number % 3)]
            told = {"boxes": boxes, "labels": [i + 1 for i in range(len(boxes))], "points": [[10, 12], [20, 22]]}
            members += [(f"{number:04}.jpg", encoded(photograph(number, number % 3), "JPEG")),
                        (f"{number:04}.cls", str(number % 3).encode()),
                        (f"{number:04}.json", json.dumps(told).encode())]  # fmt: skip
        write(folder / f"{start // 20:05}.tar", tar_of(members))


def make_depths(folder: pathlib.Path, count: int = 24) -> None:
    for number in range(count):
        depth = np.random.default_rng(number).integers(0, 65536, SIDE, dtype=np.uint16)
        out = io.BytesIO()
        Image.fromarray(depth).save(out, "PNG")
        write(folder / f"{number:04}.png", out.getvalue())


def make_speech(folder: pathlib.Path, count: int = 30) -> None:
    for number in range(count):
        length = 800 + 100 * (number % 9)
        tone = np.sin(np.arange(length) * (0.05 + 0.05 * (number % 3)))
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes((tone * 30_000).astype("<i2").tobytes())
        write(folder / CLASSES[number % 3] / f"{number:04}.wav", out.getvalue())


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]))
