"""The loaders of bench/landscape_bench.py: what each reads, what its user may choose, and the packages it needs.

Each has a venv of its own in build/landscape/venvs, made by pip of landscape-requirements/NAME.txt when it is first
asked for. Behind it stand the environment's own packages, so that torch is there once.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from typing import NamedTuple

from landscape_regimes import Regime
from landscape_sweep import Knob

HERE = pathlib.Path(__file__).parent
INSTALL_SECONDS = 900
WORKERS = Knob((2, 4, 8), 0, 64)
THREADS = Knob((8, 16, 32), 1, 256)
CALLS = Knob((32, 64, 128), 1, 1024)
AHEAD = Knob((2, 4), 1, 64)


class Peer(NamedTuple):
    """`needs` is a file of landscape-requirements, or "" if the environment itself has the packages. `forms` are those
    that it reads, as they are called in landscape_data.py, the one for a regime's own form first."""

    about: str
    packages: tuple[str, ...]  # Those whose versions the results say.
    knobs: dict[str, Knob]
    forms: dict[str, str]  # For a regime's form, the form that this peer reads.
    tasks: tuple[str, ...] = ("bytes", "pixels")
    needs: str = ""
    stores: tuple[str, ...] = ("bucket", "files")
    figures: tuple[str, ...] = ("rate", "first")
    has_ranks: bool = True  # It can give a rank its share.
    behind: tuple[str, ...] = ()  # Folders of the environment that are looked into before its own packages.

    def reads(self, regime: Regime) -> bool:
        return (
            regime.form in self.forms and regime.task in self.tasks and regime.store in self.stores
            and regime.figure in self.figures
            and (regime.ranks == 1 or self.has_ranks)
            and (regime.data != "many" or self.forms[regime.form] == "raw")
            and (regime.keep == 1 or self.forms[regime.form] == "raw")
        )  # fmt: skip


RAW = {"raw": "raw"}
ALL = ("rate", "first", "resume")
EVERY_TASK = ("bytes", "pixels", "function", "tokens")
OWN = ("bytes", "pixels", "tokens")
BEHIND = ("peers", "oracle")
PEERS = {
    "leat": Peer("Leat, default settings", (), {}, {"raw": "raw", "tar": "tar", "bin": "bin"}, EVERY_TASK, figures=ALL),
    "leat-tuned": Peer(
        "Leat at its best",
        (),
        {
            "max_in_flight": Knob((64, 128, 256), 1, 1024),
            "threads": Knob((1, 2, 4), 1, 16),
            "memory_mib": Knob((256, 1024), 64, 4096),
        },
        {"raw": "raw", "tar": "tar", "bin": "bin"},
        EVERY_TASK,
        figures=ALL,
    ),
    "torch": Peer(
        "torch's DataLoader, boto3",
        ("torch", "boto3"),
        {"workers": WORKERS},
        RAW,
        ("bytes", "pixels", "function"),
        figures=ALL,
    ),
    "torch-obstore": Peer(
        "torch's DataLoader, obstore in threads",
        ("torch", "obstore"),
        {"workers": Knob((1, 2, 4), 0, 64), "threads": THREADS},
        RAW,
        needs="obstore",
        stores=("bucket",),
        figures=ALL,
        behind=BEHIND,
    ),
    "s3torchconnector": Peer(
        "S3 Connector for PyTorch",
        ("torch", "s3torchconnector"),
        {"workers": WORKERS},
        RAW,
        needs="s3torchconnector",
        stores=("bucket",),
        figures=ALL,
        behind=BEHIND,
    ),
    "litdata-raw": Peer(
        "LitData, raw objects",
        ("torch", "litdata"),
        {"workers": WORKERS},
        RAW,
        needs="litdata",
        has_ranks=False,
        stores=("bucket",),
        behind=BEHIND,
    ),
    "litdata": Peer(
        "LitData, optimised chunks",
        ("torch", "litdata"),
        {"workers": WORKERS, "ahead": AHEAD},
        {"raw": "litdata", "tar": "litdata", "bin": "litdata"},
        OWN,
        needs="litdata",
        stores=("bucket",),
        figures=ALL,
        behind=BEHIND,
    ),
    "streaming": Peer(
        "MosaicML Streaming",
        ("torch", "mosaicml-streaming"),
        {"workers": WORKERS, "ahead": Knob((4, 8), 1, 64)},
        {"raw": "mds", "tar": "mds", "bin": "mds"},
        OWN,
        needs="streaming",
        stores=("bucket",),
        figures=ALL,
        behind=BEHIND,
    ),
    "webdataset": Peer("WebDataset", ("torch", "webdataset"), {"workers": WORKERS}, {"raw": "tar", "tar": "tar"}),
    "spdl": Peer(
        "SPDL, obstore",
        ("spdl-core", "obstore"),
        {"ahead": CALLS, "threads": Knob((2, 4), 1, 64)},
        RAW,
        needs="spdl",
        behind=BEHIND,
    ),
    "grain": Peer(
        "Grain, obstore",
        ("grain", "obstore"),
        {"threads": Knob((16, 32, 64), 1, 512), "workers": Knob((0, 1, 2), 0, 16)},
        RAW,
        needs="grain",
        figures=ALL,
    ),
    "ray": Peer(
        "Ray Data",
        ("ray",),
        {"workers": Knob((2, 4, 8), 1, 32), "blocks": Knob((16, 32, 64), 1, 512)},
        RAW,
        has_ranks=False,
        needs="ray",
    ),
    "dali": Peer(
        "DALI on the CPU",
        ("nvidia-dali-cuda120",),
        {"workers": Knob((1, 2, 4), 1, 16), "threads": Knob((1, 2, 4), 1, 16), "ahead": Knob((2, 4, 8), 1, 64)},
        RAW,
        needs="dali",
    ),
    "tf.data": Peer("tf.data", ("tensorflow-cpu",), {"calls": CALLS}, RAW, needs="tensorflow", behind=("frameworks",)),
}


class Venvs:
    """The Python of each peer."""

    def __init__(self, root: pathlib.Path, *, may_install: bool) -> None:
        self._root = root
        self._may_install = may_install
        self._ready: dict[str, str] = {}

    def python(self, peer: Peer) -> str:
        """Raises RuntimeError with the reason if its packages are not to be had."""
        if not peer.needs:
            return sys.executable
        if peer.needs not in self._ready:
            self._ready[peer.needs] = self._ensure(peer)
        return self._ready[peer.needs]

    def _ensure(self, peer: Peer) -> str:
        listed = HERE / f"landscape-requirements/{peer.needs}.txt"
        folder = self._root / peer.needs
        python, stamp = folder / "bin/python", folder / "leat-stamp"
        key = hashlib.sha256(
            listed.read_bytes() + f"{sys.version} {sysconfig.get_path('purelib')}".encode()
        ).hexdigest()
        if stamp.is_file() and stamp.read_text() == key:
            return str(python)
        if not self._may_install:
            raise RuntimeError("not installed: --quick installs what --peers names, and nothing else")
        print(f"installing what {peer.about} needs into {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        self._put_behind(folder, peer)
        words = [
            str(python),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            *options_of(listed),
            "-r",
            str(listed),
        ]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"pip took more than {INSTALL_SECONDS} s") from None
        if done.returncode:
            raise RuntimeError(f"pip failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
        stamp.write_text(key)
        return str(python)

    def _put_behind(self, folder: pathlib.Path, peer: Peer) -> None:
        """pip counts what stands behind as installed, and does not touch it: it is outside of the venv."""
        sites = list(folder.glob("lib/python*/site-packages"))
        behind = [str(pathlib.Path(sys.prefix) / name) for name in peer.behind]
        (sites[0] / "behind.pth").write_text("\n".join([*behind, sysconfig.get_path("purelib")]) + "\n")


def options_of(listed: pathlib.Path) -> list[str]:
    """A list that names all that is needed says so in its first line."""
    return ["--no-deps"] if listed.read_text().startswith("# --no-deps") else []
