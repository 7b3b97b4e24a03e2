"""Imports torchvision from where it lies apart, with or without its compiled part.

tools/oracle-requirements.txt says why it lies apart. Its transforms need none of its compiled
part, which fits one build of torch alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys

from torch import library


def is_there() -> bool:
    """Whether it is there, in a place that imports will find from now on."""
    apart = pathlib.Path(sys.prefix) / "oracle"
    if importlib.util.find_spec("torchvision") is None and apart.is_dir():
        sys.path.append(str(apart))
    return importlib.util.find_spec("torchvision") is not None


def load() -> None:
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        # It registers what two ops of its compiled part give before it asks whether that
        # part is there.
        if "does not exist" not in str(error):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        for op in ("nms", "qnms"):
            library.define(f"torchvision::{op}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
