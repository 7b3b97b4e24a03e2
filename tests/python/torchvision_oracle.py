"""torchvision as the oracle for the ops, with a Pillow image as its input.

It lies apart from other packages, and torchvision_apart.py imports it.
"""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="torchvision's transforms need torch")

import torchvision_apart  # noqa: E402

if not torchvision_apart.is_there():
    pytest.skip("torchvision is not installed: see tools/oracle-requirements.txt", allow_module_level=True)
torchvision_apart.load()

from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402, N812

__all__ = ["F", "apply_drawn", "differences", "torch", "tv_tensors", "v2"]


def _warp_arguments(drawn: dict) -> dict:
    return {
        "angle": drawn["angle"],
        "translate": [int(pixels) for pixels in drawn["translate"]],
        "scale": drawn["scale"],
        "shear": list(drawn["shear"]),
    }


AUGMENT = v2.RandAugment()
"""All ops of its kind make its changes."""

POINT_CHANGES = (
    "adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue", "posterize",
    "solarize", "invert", "autocontrast", "equalize", "adjust_sharpness",
)  # fmt: skip


def apply_drawn(image: Image.Image, drawn: dict, **options) -> Image.Image:
    """torchvision's result for a Pillow image by the parameters that `Chain.drawn`
    told.

    ``options`` are those that are not drawn: interpolation, fill, kernel_size, expand.
    """
    name = drawn["name"]
    values = {key: value for key, value in drawn.items() if key not in ("op", "name")}
    if name in ("horizontal_flip", "vertical_flip"):
        return getattr(F, name)(image)
    if name == "crop":
        sides = {key: int(value) for key, value in values.items()}
        return F.crop(image, **sides)
    if name == "affine":
        return F.affine(image, **_warp_arguments(values), **options)
    if name == "rotate":
        return F.rotate(image, values["angle"], **options)
    if name == "gaussian_blur":
        return F.gaussian_blur(image, sigma=values["sigma"], **options)
    if name == "rgb_to_grayscale":
        return F.rgb_to_grayscale(image, num_output_channels=3)
    if name in POINT_CHANGES:
        if "bits" in values:
            values["bits"] = int(values["bits"])
        return getattr(F, name)(image, **values)
    fill = options.get("fill")
    return AUGMENT._apply_image_or_video_transform(
        image, name, values["magnitude"],
        interpolation=options.get("interpolation", v2.InterpolationMode.NEAREST),
        fill={Image.Image: fill},
    )


def differences(got: np.ndarray, expected: Image.Image) -> np.ndarray:
    """The distances between the bytes of an HWC array and of an image."""
    wanted = np.asarray(expected)
    if wanted.ndim == 2:
        wanted = wanted[:, :, None]
    assert got.shape == wanted.shape
    return np.abs(got.astype(np.int16) - wanted.astype(np.int16))
