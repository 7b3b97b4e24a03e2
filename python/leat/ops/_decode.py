"""Bytes of pictures to arrays."""

from __future__ import annotations

from typing import Any

from leat.ops._op import Op, dtype_name, fail


class DecodeImage(Op):
    """Decodes JPEG, PNG, WebP or TIFF, recognised by the bytes, to an array named `image`.

    It decodes the first picture of an animated WebP, if that covers the whole canvas;
    otherwise the sample is bad. It decodes TIFFs of one picture, in grey or RGB of 8 or 16
    bits, uncompressed or compressed by LZW, deflate or PackBits; other TIFFs are bad
    samples.

    Args:
        mode: "RGB" or "L" for grey; of PNGs and TIFFs of 16 bits "RGB;16" or "I;16" for
            grey, in uint16, as ``(3, H, W)`` and ``(1, H, W)``. These can be cropped,
            mirrored, padded with 0, filled up, and resized with
            ``interpolation="nearest"``; `Normalize` and `Cast` divide by 65,535 where
            others divide by 255. In the other modes a picture of 16 bits raises.
        layout: "CHW" or "HWC", the order of the array's dimensions.
        exif_orientation: True turns the picture upright, as its EXIF says; False takes it
            as it is stored, as Pillow and torchvision's datasets do. By default, it is
            turned, but if the sample has a mask, boxes or points, a picture that would be
            turned is a bad sample: only you know whether they were made on the picture as
            it is displayed (say True) or as it is stored (say False).
        exact: never decode a JPEG at a half, a quarter or an eighth of its size. By
            default, this happens only if the crop is at least three times the output both
            ways, and it changes photographs by less than 2 levels on average.
        max_pixels: refuse images that claim more; the default is Pillow's.
        depth: 8 takes the upper 8 bits of 16, without an error.
        ragged: pictures may differ in size; a batch is always a `leat.Ragged` with their
            shapes. Without it, the first picture decides, and another size raises, unless
            `PadTo` ends the chain, a batch is one sample, or the loader has a ``collate``.
    """

    _name = "decode_image"
    _reads = True

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        mode: str = "RGB",
        layout: str = "CHW",
        exif_orientation: bool | None = None,
        exact: bool = False,
        max_pixels: int | None = None,
        depth: int | None = None,
        ragged: bool = False,
    ) -> None:
        params = {
            "mode": self._choice("mode", mode, ("RGB", "L", "I;16", "RGB;16")),
            "layout": self._choice("layout", layout, ("CHW", "HWC")),
            "exif_orientation": None if exif_orientation is None else bool(exif_orientation),
            "exact": bool(exact),
            "max_pixels": None if max_pixels is None else int(max_pixels),
            "depth": depth,
            "ragged": True if ragged else None,
        }
        if max_pixels is not None and max_pixels < 1:
            fail(self, f"max_pixels={max_pixels!r} must be at least 1")
        if depth is not None and (depth != 8 or mode.endswith(";16")):
            fail(self, f'depth={depth!r} must be 8, in mode "RGB" or "L"')
        super().__init__(params, field, to)


class DecodeMask(Op):
    """A PNG, TIFF or .npy of labels, one for each pixel, to an array of shape (height, width).

    Indices of a palette stay indices, as in Pascal VOC's masks (0 to 20), and grey
    values of 1 to 8 bits stay what they are (of a TIFF, of 8). An image that is no PNG
    in grey or with a palette, and no TIFF in grey, is a bad sample: colours are no labels, and a JPEG blurs them.

    A ``.npy`` is an array of shape (height, width) of bool or whole numbers of any size,
    as `numpy.save` writes it. Its labels are 0 to 255, and a sample with another number
    is bad.

    Ops that move pixels move the pixels of a mask with those of its image, and never blend
    two labels: a resize takes the label of the nearest pixel, as Pillow's "nearest" does
    (and torchvision's "nearest-exact", except if two are equally near). `Normalize`, `Cast`
    and ops that change colours do not change masks; if `field` names a mask, they raise.

    Args:
        field: default: mask, seg or segmentation. Another one, such as npy, has to be
            named.
        to: default: mask.
        dtype: "uint8", or "int64" for torch's losses.
        ignore_index: the label of pixels from outside the picture, for example if a crop
            reaches beyond it.
        ragged: as for `DecodeImage`.
        max_pixels: refuse images that claim more; the default is Pillow's.
    """

    _name = "decode_mask"
    _reads = True

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        dtype: Any = "uint8",
        ignore_index: int = 255,
        ragged: bool = False,
        max_pixels: int | None = None,
    ) -> None:
        params = {
            "dtype": self._choice("dtype", dtype_name(dtype), ("uint8", "int64")),
            "ignore_index": self._pixels("ignore_index", ignore_index, (1,), 255),
            "ragged": True if ragged else None,
            "max_pixels": None if max_pixels is None else int(max_pixels),
        }
        if max_pixels is not None and max_pixels < 1:
            fail(self, f"max_pixels={max_pixels!r} must be at least 1")
        super().__init__(params, field, to)
