"""Ops that draw one or more of several changes, and RandomErasing."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

from leat.ops._geometry import WARPS
from leat.ops._op import Op, Pixels, fail, independent_or_none


class RandomErasing(Op):
    """Puts one colour or noise over a random part of some pictures.

    After `Normalize` or `Cast` it works on the delivered numbers, as torchvision's op does
    on a float tensor: 0 is then the mean colour. Before them it works on bytes.

    Args:
        p: the probability, from 0 to 1.
        scale: bounds of the part's area, as a share of the picture's.
        ratio: bounds of its height to its width.
        value: one number, or one for each channel; "random" for normal noise with mean 0
            and deviation 1, after `Normalize` or `Cast`.
        independent: as for `RandomResizedCrop`.
    """

    _name = "random_erasing"

    def __init__(
        self,
        p: float = 0.5,
        scale: Tuple[float, float] = (0.02, 0.33),
        ratio: Tuple[float, float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params: dict[str, Any] = {
            "p": self._probability(p),
            "independent": independent_or_none(independent),
            "scale": self._range("scale", scale),
            "ratio": self._range("ratio", ratio),
            "value": self._choice("value", value, ("random",))
            if isinstance(value, str)
            else self._number_list("value", value, (1, 3)),
        }
        if params["scale"][1] > 1:
            fail(self, f"scale={scale!r} must not exceed 1")
        super().__init__(params, field, to)


class _Augment(Op):
    """The common part of the ops that draw out of a space of changes."""

    def __init__(
        self,
        params: dict[str, Any],
        interpolation: str,
        fill: Pixels | None,
        independent: bool,
        field: str | None,
        to: str | None,
    ) -> None:
        style = {
            "independent": independent_or_none(independent),
            "interpolation": self._choice("interpolation", interpolation, WARPS),
            "fill": self._pixels("fill", 0 if fill is None else fill, (1, 3), 255),
        }
        super().__init__({**params, **style}, field, to)

    def _count(self, name: str, value: int, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            fail(self, f"{name}={value!r} must be a whole number")
        if not low <= value <= high:
            fail(self, f"{name}={value!r} must be from {low} to {high}")
        return value


class RandAugment(_Augment):
    """Applies a few of torchvision's 14 changes, at random and with one strength.

    Masks, boxes and keypoints of the sample turn, move and shear with the picture.

    Args:
        num_ops: how many, 1 to 64.
        magnitude: which of the magnitudes, from 0; 0 is the weakest.
        num_magnitude_bins: how many magnitudes there are, 2 or more.
        interpolation: for turns, moves and shears: "nearest", "bilinear" or "bicubic".
        fill: for pixels from outside the picture, 0 to 255: one number, or (red, green,
            blue); None for black.
        independent: as for `RandomResizedCrop`.
    """

    _name = "rand_augment"
    _moves_pixels = True

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: Pixels | None = None,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        bins = self._count("num_magnitude_bins", num_magnitude_bins, 2, 10_000)
        params = {
            "num_ops": self._count("num_ops", num_ops, 1, 64),
            "magnitude": self._count("magnitude", magnitude, 0, bins - 1),
            "num_magnitude_bins": bins,
        }
        super().__init__(params, interpolation, fill, independent, field, to)


class AutoAugment(_Augment):
    """Applies one of 25 pairs of changes that were learnt on a dataset.

    Args:
        policy: "imagenet", "cifar10" or "svhn", or torchvision's `AutoAugmentPolicy`.
        interpolation, fill: as for `RandAugment`.
        independent: as for `RandomResizedCrop`.
    """

    _name = "auto_augment"
    _moves_pixels = True

    def __init__(
        self,
        policy: str = "imagenet",
        interpolation: str = "nearest",
        fill: Pixels | None = None,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        name = getattr(policy, "value", policy)
        params = {
            "policy": self._choice("policy", name, ("imagenet", "cifar10", "svhn"))
        }
        super().__init__(params, interpolation, fill, independent, field, to)


class TrivialAugmentWide(_Augment):
    """Applies one random change of a random strength.

    Args:
        num_magnitude_bins, interpolation, fill: as for `RandAugment`.
        independent: as for `RandomResizedCrop`.
    """

    _name = "trivial_augment_wide"
    _moves_pixels = True

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: Pixels | None = None,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        bins = self._count("num_magnitude_bins", num_magnitude_bins, 2, 10_000)
        params = {"num_magnitude_bins": bins}
        super().__init__(params, interpolation, fill, independent, field, to)


class AugMix(_Augment):
    """Mixes the picture with the results of several random chains of changes.

    It costs as much as all its chains together. Masks, boxes and keypoints cannot follow
    it: if a sample has any, it raises.

    Args:
        severity: the greatest strength of the changes, 1 to 10.
        mixture_width: how many chains, 1 to 64.
        chain_depth: changes in each chain, at most 64; a value below 1 draws it from 1 to
            3.
        alpha: of the distributions of the weights, Beta and Dirichlet.
        all_ops: also use brightness, colour, contrast and sharpness.
        interpolation, fill: as for `RandAugment`.
        independent: as for `RandomResizedCrop`.
    """

    _name = "aug_mix"
    _moves_pixels = True

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        fill: Pixels | None = None,
        *,
        independent: bool = False,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if not 1e-3 <= alpha <= 1000:
            fail(self, f"alpha={alpha!r} must be from 0.001 to 1000")
        params = {
            "severity": self._count("severity", severity, 1, 10),
            "mixture_width": self._count("mixture_width", mixture_width, 1, 64),
            "chain_depth": self._count("chain_depth", max(chain_depth, 0), 0, 64),
            "alpha": float(alpha),
            "all_ops": bool(all_ops),
        }
        super().__init__(params, interpolation, fill, independent, field, to)
