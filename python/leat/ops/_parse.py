"""Ops that read numbers, texts, JSON, arrays and features."""

from __future__ import annotations

from typing import Any

from leat.ops._op import MOST_SIDE, REAL, WHOLE, Op, dtype_name, fail


class ParseInt(Op):
    """Parses decimal digits, as in WebDataset's ``.cls``, to a whole number.

    A batch is an array of shape ``(samples,)``. A sign before the digits and blanks around
    them are allowed; anything else makes the sample bad.

    Args:
        field: default: cls, cls2, class, count, index, inx or id.
        dtype: "int64", or another of int8 to int64 and uint8 to uint64; a number
            that does not fit raises `leat.InvalidArgument`.
    """

    _name = "parse_int"
    _reads = True

    def __init__(
        self, field: str | None = None, to: str | None = None, *, dtype: Any = "int64"
    ) -> None:
        params = {"dtype": self._choice("dtype", dtype_name(dtype), WHOLE)}
        super().__init__(params, field, to)


class ParseFloat(Op):
    """Parses a decimal number such as ``-1.5e3``; also inf and nan.

    A batch is an array of shape ``(samples,)``. Blanks around the number are allowed;
    anything else makes the sample bad.

    Args:
        field: must be given if there are several fields of bytes.
        dtype: "float64" or "float32"; a number that is infinite only as float32 raises
            `leat.InvalidArgument`.
    """

    _name = "parse_float"
    _reads = True

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        dtype: Any = "float64",
    ) -> None:
        params = {"dtype": self._choice("dtype", dtype_name(dtype), REAL)}
        super().__init__(params, field, to)


class ParseText(Op):
    """Decodes UTF-8 to str; a batch is a list of str. Bytes that are not UTF-8 make the
    sample bad.

    Args:
        field: default: txt, text or transcript.
    """

    _name = "parse_text"
    _reads = True

    def __init__(self, field: str | None = None, to: str | None = None) -> None:
        super().__init__({}, field, to)


class ParseJson(Op):
    """Reads a number, a text or a list of numbers from a JSON document.

    Numbers come as an array of shape ``(samples,)``, lists as ``(samples, length)``,
    lists of lists as ``(samples, rows, columns)``, texts as a list of str. Whole
    numbers are int64, those with a point or an exponent float64 and true and false
    bool, unless `dtype` says otherwise; without it, samples that mix these are an
    error. Several such ops on one field read it once.

    A sample is bad if its document is not JSON, nests more than 256 deep, or has nothing at
    `path`. It is also bad if `path` holds an object, a null, uneven lists, a number beyond
    int64 or more than 65,536 numbers.

    Args:
        path: where the value is: ``"a.b[0]"``, ``'a["b.c"]'``. None takes the whole
            document.
        field: default: json or jsn.
        dtype: int8 to int64, uint8 to uint64, float32, float64, bool or str. A
            number that does not fit raises `leat.InvalidArgument`.
        ragged: lists may differ in length; they come as `leat.Ragged`, always.
    """

    _name = "parse_json"
    _reads = True

    def __init__(
        self,
        path: str | None = None,
        field: str | None = None,
        to: str | None = None,
        *,
        dtype: Any = None,
        ragged: bool = False,
    ) -> None:
        if path is not None and not isinstance(path, str):
            fail(self, f'path={path!r} must be a str such as "a.b[0]"')
        choices = (*WHOLE, *REAL, "bool", "str")
        params = {
            "path": path,
            "dtype": None
            if dtype is None
            else self._choice("dtype", dtype_name(dtype), choices),
            "ragged": bool(ragged),
        }
        super().__init__(params, field, to)


class ParseBoxes(Op):
    """Reads boxes from a JSON document; the boxes follow their picture.

        ops = [DecodeImage("jpg"),
               ParseBoxes("json", path="annotations[*].bbox", format="xywh",
                          labels="annotations[*].category_id"),
               RandomResizedCrop(512), RandomHorizontalFlip(), Cast()]

    A sample's boxes are a float32 array of shape ``(boxes, 4)``: left, top, right, bottom,
    in pixels of the delivered picture, whatever their `format`; a batch of them is a
    `leat.Ragged`. With `labels` there is a second field, int64 of shape ``(boxes,)``, for
    the same boxes. Ops that move the pixels of the first image of the sample (or its first
    mask, if it has no image) move its boxes by the same draw; they come after this op and
    name no `field`.

    A crop clips each box. The op drops a box, with its label, if the rest is narrower or
    lower than `min_size` (1 pixel, as in torchvision's `SanitizeBoundingBoxes`), or if less
    than `min_visibility` of its area is left (0, as Albumentations').

    A sample is bad if its document is not JSON or is longer than 2 MiB, if it has nothing
    at `path` or boxes of other than 4 numbers, or if `labels` does not have one whole
    number for each box.

    Args:
        field: default: json or jsn. A text of the catalogue has to be named.
        to: default: boxes.
        path: of a list of boxes, such as ``"boxes"``; ``"annotations[*].bbox"`` for a
            list of objects with a box each; None for the whole document.
        format: of the numbers: "xyxy", "xywh" or "cxcywh".
        normalized: they are shares of the picture's width and height.
        labels: the path of the labels, one for each box.
        labels_to: the name of their field.
        min_size: in pixels.
        min_visibility: from 0 to 1.
    """

    _name = "parse_boxes"
    _reads = True

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        path: str | None = None,
        format: str = "xyxy",
        normalized: bool = False,
        labels: str | None = None,
        labels_to: str = "labels",
        min_size: float = 1.0,
        min_visibility: float = 0.0,
    ) -> None:
        for name, value in (("path", path), ("labels", labels), ("labels_to", labels_to)):
            if value is not None and not isinstance(value, str):
                fail(self, f"{name}={value!r} must be a str")
        if not 0 <= min_size <= MOST_SIDE:
            fail(self, f"min_size={min_size!r} must be from 0 to {MOST_SIDE} pixels")
        if not 0 <= min_visibility <= 1:
            fail(self, f"min_visibility={min_visibility!r} must be from 0 to 1")
        params = {
            "path": path,
            "format": self._choice("format", format, ("xyxy", "xywh", "cxcywh")),
            "normalized": bool(normalized),
            "labels": labels,
            "labels_to": labels_to,
            "min_size": float(min_size),
            "min_visibility": float(min_visibility),
        }
        super().__init__(params, field, to)


class ParseKeypoints(Op):
    """Reads points from a JSON document; the points follow their picture.

    A sample's points are a float32 array of shape ``(points, 2)``: x and y in pixels of the
    delivered picture. If rows have three numbers, as COCO's do, the third one stays, and
    becomes 0 if a crop cut the point off. A batch of them is a `leat.Ragged`. The op drops
    no point and moves none to an edge, so the third point of a skeleton stays the third; a
    point outside the picture has coordinates outside. A point is a pixel, as in
    torchvision: mirroring changes x to width - 1 - x, and ``x = width`` is outside.

    They move with the picture as boxes do; see `ParseBoxes`, also for bad samples.

    Args:
        field: default: json or jsn. A text of the catalogue has to be named.
        to: default: keypoints.
        path: of a list of points; None for the whole document.
        normalized: they are shares of the picture's width and height.
    """

    _name = "parse_keypoints"
    _reads = True

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        path: str | None = None,
        normalized: bool = False,
    ) -> None:
        if path is not None and not isinstance(path, str):
            fail(self, f"path={path!r} must be a str")
        super().__init__({"path": path, "normalized": bool(normalized)}, field, to)


class _Arrays(Op):
    """Reads arrays that may differ in their first dimension."""

    _reads = True

    def __init__(
        self, field: str | None = None, to: str | None = None, *, ragged: bool = False
    ) -> None:
        super().__init__({"ragged": bool(ragged)}, field, to)


class LoadNpy(_Arrays):
    """Reads an array as `numpy.save` writes it (.npy 1.0 to 3.0).

    A batch is an array of shape ``(samples, ...)`` and of the file's type: bool, int8 to
    int64, uint8 to uint64, float16 to float64, complex64 or complex128. The first sample
    decides shape and type; a sample that differs raises, and the error names both keys.

    No op moves an array with a picture. `DecodeMask` reads a mask in a .npy, which moves.

    Raises `leat.InvalidArgument` for arrays in Fortran order, for big-endian arrays, and
    for arrays of Python objects, structures, texts or dates. A file that is damaged, or
    holds more than one array, is a bad sample.

    Args:
        field: default: npy.
        ragged: arrays may differ in their first dimension; they come as
            `leat.Ragged`, always.
    """

    _name = "load_npy"


class _Numbers(Op):
    """Reads numbers whose type the user may say, and whose count may differ."""

    _dtypes: tuple[str, ...]

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        dtype: Any = None,
        ragged: bool = False,
    ) -> None:
        params = {
            "dtype": None if dtype is None else self._choice("dtype", dtype_name(dtype), self._dtypes),
            "ragged": bool(ragged),
        }
        super().__init__(params, field, to)


class ParseFeature(_Numbers):
    """Reads the numbers of a feature of a ``tf.train.Example``, out of a TFRecord file.

        ops = [DecodeImage("image/encoded"), ParseFeature("image/class/label"),
               ParseFeature("image/object/bbox/xmin", ragged=True)]

    Numbers of an int64_list are int64, those of a float_list float32, unless `dtype` says
    otherwise. A batch is an array of shape ``(samples,)`` if each sample has one number, and
    ``(samples, length)`` if each has as many. A sample with another count raises
    `leat.InvalidArgument`, unless lists may be ragged.

    Features of bytes need no such op: their field is the value. A sample is bad if the field is
    no feature of numbers.

    Args:
        field: the feature; must be given if there are several fields of bytes.
        dtype: int8 to int64, uint8 to uint64, float32, float64 or bool. A number that does
            not fit raises `leat.InvalidArgument`.
        ragged: lists may differ in length; they come as `leat.Ragged`, always.
    """

    _name = "parse_feature"
    _reads = True
    _dtypes = (*WHOLE, *REAL, "bool")


class LoadMdsArray(_Numbers):
    """Reads an array of a column ``ndarray`` or ``ndarray:dtype`` of MosaicML Streaming's shards.

    A batch is an array of shape ``(samples, ...)``. The first sample decides shape and type; a
    sample that differs raises, and the error names both keys. (`leat.Dataset.mds` gives columns
    that tell their shape as well, such as ``ndarray:uint16:65``, as arrays without an op.)

    An array that is damaged, or whose head does not fit its bytes, is a bad sample.

    Args:
        field: must be given if there are several fields of bytes.
        dtype: that of the column's encoding: "int32" for ``ndarray:int32``; None for
            ``ndarray``, where each array says it.
        ragged: arrays may differ in their first dimension; they come as
            `leat.Ragged`, always.
    """

    _name = "load_mds_array"
    _reads = True
    _dtypes = (*WHOLE, "float16", *REAL)


class LoadLitdataArray(_Arrays):
    """Reads an array of a column ``tensor`` or ``numpy`` of LitData's chunks: any but one dimension.

    A batch is an array of shape ``(samples, ...)``. The first sample decides shape and type; a
    sample that differs raises, and the error names both keys. (`leat.Dataset.litdata` gives
    arrays of one dimension, ``no_header_tensor`` and ``no_header_numpy``, as arrays without an
    op.)

    An array that is damaged, or whose head does not fit its bytes, is a bad sample.

    Args:
        field: must be given if there are several fields of bytes.
        ragged: arrays may differ in their first dimension; they come as
            `leat.Ragged`, always.
    """

    _name = "load_litdata_array"
