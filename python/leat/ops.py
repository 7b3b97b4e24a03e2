"""What is done to the fields of a sample, from bytes to an array.

    ops = [DecodeImage(), RandomResizedCrop(224), RandomHorizontalFlip(),
           Normalize(IMAGENET_MEAN, IMAGENET_STD)]

makes float32 arrays of shape (3, 224, 224). Arrays are CHW unless `DecodeImage` is
told `layout="HWC"`, and uint8 until `Normalize` or `Cast` makes float32. Ops that
move pixels come before those two.

Some ops read a field of bytes: `DecodeImage`, `ParseInt`, `ParseFloat`, `ParseText`,
`ParseJson` and `LoadNpy`; of these the four that parse also read a text of the
catalogue, which `field` has to name. All others change the image of the op before, or of the
field that `field` names. Every op takes `to`, the name of its field from there on.

An op that reads bytes takes the field that `field` names, else the only one there
is, else the one with a usual name: of images jpg, jpeg, png, webp, image and data;
of the others WebDataset's extensions, which each op lists. So

    ops = [DecodeImage(), ParseInt(), ParseJson("box", to="box"), ParseText()]

reads tar shards with .jpg, .cls, .json and .txt. `DecodeImage` names its field
`image`, the others keep the name.

A random op depends on the seed, the epoch and the sample, and on nothing else: not
on threads, world size or where a run was resumed.
"""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Iterable, Sequence, Tuple, Union

import numpy as np

from leat import _functions, _native
from leat.errors import InvalidArgument

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "Cast",
    "CenterCrop",
    "Chain",
    "ColorJitter",
    "DecodeImage",
    "LoadNpy",
    "Normalize",
    "Op",
    "Pad",
    "ParseFloat",
    "ParseInt",
    "ParseJson",
    "ParseText",
    "Python",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "Resize",
    "functions_of",
    "specs_to_json",
]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Size = Union[int, Sequence[int]]
_INTERPOLATIONS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
_MOST_SIDE = 65535


def _fail(op: object, message: str) -> None:
    raise InvalidArgument(f"{type(op).__name__}: {message}")


class Op:
    """What all ops have in common. Ops are values: they compare and print."""

    _name = ""

    def __init__(
        self, params: dict[str, Any], field: str | None, to: str | None
    ) -> None:
        self._params = params
        self._field = field
        self._to = to
        for name, value in (("field", field), ("to", to)):
            if value is not None and not (isinstance(value, str) and value):
                _fail(self, f"{name}={value!r} must be the name of a field")

    def to_spec(self) -> dict[str, Any]:
        """The op as the engine reads it: a name and what is not None."""
        params = {**self._params, "field": self._field, "to": self._to}
        return {
            "name": self._name,
            "params": {k: v for k, v in params.items() if v is not None},
        }

    def __repr__(self) -> str:
        params = {**self._params, "field": self._field, "to": self._to}
        inside = ", ".join(f"{k}={v!r}" for k, v in params.items() if v is not None)
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Op):
            return NotImplemented
        return self.to_spec() == other.to_spec()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_spec(), sort_keys=True))

    def _size(self, size: Size) -> int | list[int]:
        sides = list(size) if isinstance(size, (list, tuple)) else [size]
        if len(sides) not in (1, 2) or any(
            isinstance(side, bool)
            or not isinstance(side, (int, np.integer))
            or not 1 <= side <= _MOST_SIDE
            for side in sides
        ):
            _fail(
                self,
                f"size={size!r} must be a side or (height, width) of "
                f"1 to {_MOST_SIDE} pixels",
            )
        sides = [int(side) for side in sides]
        return sides[0] if len(sides) == 1 else sides

    def _pixels(
        self, name: str, value: Any, counts: Sequence[int], most: int
    ) -> int | list[int]:
        numbers = list(value) if isinstance(value, (list, tuple)) else [value]
        if len(numbers) not in counts or any(
            isinstance(number, bool)
            or not isinstance(number, (int, np.integer))
            or not 0 <= number <= most
            for number in numbers
        ):
            which = " or ".join(map(str, counts))
            _fail(self, f"{name}={value!r} must be {which} numbers from 0 to {most}")
        numbers = [int(number) for number in numbers]
        return numbers[0] if len(numbers) == 1 else numbers

    def _choice(self, name: str, value: str, choices: Sequence[str]) -> str:
        if value not in choices:
            _fail(self, f"{name}={value!r} must be one of {', '.join(choices)}")
        return value

    def _range(self, name: str, value: Sequence[float]) -> list[float]:
        numbers = [float(number) for number in value]
        if len(numbers) != 2 or not 0 < numbers[0] <= numbers[1] < math.inf:
            _fail(self, f"{name}={value!r} must be (low, high), 0 < low <= high")
        return numbers


class DecodeImage(Op):
    """JPEG, PNG or WebP, told apart by their bytes, to an array named `image`.

    Of an animated WebP the first picture is decoded, if it covers all of it; else it
    is a bad sample.

    Args:
        mode: "RGB", or "L" for grey.
        layout: "CHW" or "HWC", the order of the array's dimensions.
        exif_orientation: turn the picture upright, as its EXIF says. Pillow and
            torchvision's datasets leave that out.
        exact: never decode a JPEG at a half, a quarter or an eighth of its size.
            That is done only where the crop is at least three times the output
            both ways, and changes photographs by less than 2 levels on average.
        max_pixels: refuse images that claim more; the default is Pillow's.
    """

    _name = "decode_image"

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        mode: str = "RGB",
        layout: str = "CHW",
        exif_orientation: bool = True,
        exact: bool = False,
        max_pixels: int | None = None,
    ) -> None:
        params = {
            "mode": self._choice("mode", mode, ("RGB", "L")),
            "layout": self._choice("layout", layout, ("CHW", "HWC")),
            "exif_orientation": bool(exif_orientation),
            "exact": bool(exact),
            "max_pixels": None if max_pixels is None else int(max_pixels),
        }
        if max_pixels is not None and max_pixels < 1:
            _fail(self, f"max_pixels={max_pixels!r} must be at least 1")
        super().__init__(params, field, to)


class Resize(Op):
    """Changes the size, antialiased: Pillow's pixels, byte for byte.

    Args:
        size: (height, width); or one number for the shorter side, the other
            following in proportion.
        interpolation: one of Pillow's filters: "nearest", "box", "bilinear",
            "hamming", "bicubic", "lanczos".
    """

    _name = "resize"

    def __init__(
        self,
        size: Size,
        interpolation: str = "bilinear",
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "size": self._size(size),
            "interpolation": self._choice(
                "interpolation", interpolation, _INTERPOLATIONS
            ),
        }
        super().__init__(params, field, to)


class CenterCrop(Op):
    """Cuts out the middle; what is too small is padded with black.

    Args:
        size: a side, or (height, width).
    """

    _name = "center_crop"

    def __init__(
        self, size: Size, *, field: str | None = None, to: str | None = None
    ) -> None:
        super().__init__({"size": self._size(size)}, field, to)


class RandomResizedCrop(Op):
    """Cuts out a random part and resizes it.

    Args:
        size: a side, or (height, width), of the result.
        scale: bounds of the part's area, as a share of the picture's.
        ratio: bounds of the part's width to its height.
        interpolation: as for `Resize`.
    """

    _name = "random_resized_crop"

    def __init__(
        self,
        size: Size,
        scale: Tuple[float, float] = (0.08, 1.0),
        ratio: Tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "size": self._size(size),
            "scale": self._range("scale", scale),
            "ratio": self._range("ratio", ratio),
            "interpolation": self._choice(
                "interpolation", interpolation, _INTERPOLATIONS
            ),
        }
        if params["scale"][1] > 1:
            _fail(self, f"scale={scale!r} must not exceed 1")
        super().__init__(params, field, to)


class RandomHorizontalFlip(Op):
    """Mirrors some pictures, left to right.

    Args:
        p: the probability, from 0 to 1.
    """

    _name = "random_horizontal_flip"

    def __init__(
        self, p: float = 0.5, *, field: str | None = None, to: str | None = None
    ) -> None:
        if not 0 <= p <= 1:
            _fail(self, f"p={p!r} must be from 0 to 1")
        super().__init__({"p": float(p)}, field, to)


Pixels = Union[int, Sequence[int]]


class RandomCrop(Op):
    """Cuts out a random part, as torchvision's op of that name.

    What is too small even with its padding gets what is missing on both sides
    first, as with torchvision's ``pad_if_needed=True``.

    Args:
        size: a side, or (height, width), of the result.
        padding: pixels added before the crop: one number for every side, (left and
            right, top and bottom), or (left, top, right, bottom).
        fill: of the added pixels, 0 to 255: one number, or (red, green, blue).
    """

    _name = "random_crop"

    def __init__(
        self,
        size: Size,
        padding: Pixels = 0,
        *,
        fill: Pixels = 0,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "size": self._size(size),
            "padding": self._pixels("padding", padding, (1, 2, 4), _MOST_SIDE),
            "fill": self._pixels("fill", fill, (1, 3), 255),
        }
        super().__init__(params, field, to)


class Pad(Op):
    """Adds a border.

    Args:
        padding: pixels: one number for every side, (left and right, top and bottom),
            or (left, top, right, bottom).
        size: instead of `padding`: a side, or (height, width), that the picture has
            at least afterwards, with itself in the middle.
        fill: of the added pixels, 0 to 255: one number, or (red, green, blue).
    """

    _name = "pad"

    def __init__(
        self,
        padding: Pixels = 0,
        *,
        size: Size | None = None,
        fill: Pixels = 0,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if size is not None and padding != 0:
            _fail(self, "padding and size cannot both be given")
        params = {
            "padding": self._pixels("padding", padding, (1, 2, 4), _MOST_SIDE),
            "size": None if size is None else self._size(size),
            "fill": self._pixels("fill", fill, (1, 3), 255),
        }
        super().__init__(params, field, to)


class ColorJitter(Op):
    """Changes brightness, contrast, saturation and hue by random amounts, in an order
    that is random too, as torchvision's op of that name does to Pillow's images.

    Contrast is around the mean of the picture as it is at that place in the chain:
    what was cropped away before does not count, what is cropped away later does.
    A grey picture has neither saturation nor hue.

    Args:
        brightness, contrast, saturation: x draws a factor from max(0, 1 - x) to
            1 + x; (low, high) gives the bounds, 0 <= low <= high <= 1000.
        hue: x draws a turn from -x to x, as a share of the colour circle, x at most
            0.5; or (low, high), -0.5 <= low <= high <= 0.5.
    """

    _name = "color_jitter"

    def __init__(
        self,
        brightness: float | Sequence[float] = 0,
        contrast: float | Sequence[float] = 0,
        saturation: float | Sequence[float] = 0,
        hue: float | Sequence[float] = 0,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        params = {
            "brightness": self._jitter("brightness", brightness, 0, 1000),
            "contrast": self._jitter("contrast", contrast, 0, 1000),
            "saturation": self._jitter("saturation", saturation, 0, 1000),
            "hue": self._jitter("hue", hue, -0.5, 0.5),
        }
        super().__init__(params, field, to)

    def _jitter(
        self, name: str, value: Any, low: float, high: float
    ) -> float | list[float]:
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
            reach = float(value)
            # Around 1 for a factor, around 0 for the hue.
            if 0 <= reach <= (high if low < 0 else high - 1):
                return reach
        elif isinstance(value, (list, tuple)) and len(value) == 2:
            bounds = [float(number) for number in value]
            if low <= bounds[0] <= bounds[1] <= high:
                return bounds
        _fail(
            self,
            f"{name}={value!r} must be a number from 0 on, or (low, high) within "
            f"{low} to {high}",
        )


class Normalize(Op):
    """To float32: (value / 255 - mean) / std, channel by channel.

    Args:
        mean: one number, or one for each channel, between 0 and 1; or "imagenet".
        std: the same; may be left out if mean is "imagenet".
    """

    _name = "normalize"

    def __init__(
        self,
        mean: str | float | Sequence[float],
        std: str | float | Sequence[float] | None = None,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        if std is None and mean != "imagenet":
            _fail(self, 'std must be given unless mean is "imagenet"')
        params = {
            "mean": self._numbers("mean", mean),
            "std": None if std is None else self._numbers("std", std),
        }
        if isinstance(params["std"], list) and 0.0 in params["std"]:
            _fail(self, f"std={std!r} must not be 0")
        super().__init__(params, field, to)

    def _numbers(self, name: str, value: Any) -> str | list[float]:
        if isinstance(value, str):
            return self._choice(name, value, ("imagenet",))
        numbers = [float(x) for x in np.ravel(np.asarray(value, dtype=np.float64))]
        if len(numbers) not in (1, 3) or not all(map(math.isfinite, numbers)):
            _fail(self, f"{name}={value!r} must be one number, or one per channel")
        return numbers


class Cast(Op):
    """To another type.

    Args:
        dtype: "uint8" or "float32", or NumPy's types of these names.
        scale: from 0-255 to 0-1, if to float32.
    """

    _name = "cast"

    def __init__(
        self,
        dtype: Any = "float32",
        scale: bool = True,
        *,
        field: str | None = None,
        to: str | None = None,
    ) -> None:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
        params = {
            "dtype": self._choice("dtype", name, ("uint8", "float32")),
            "scale": bool(scale),
        }
        super().__init__(params, field, to)


_WHOLE = (
    "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
_REAL = ("float64", "float32")


def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, str):
        return dtype
    if dtype is bool or dtype is str:
        return dtype.__name__
    try:
        return np.dtype(dtype).name
    except TypeError:
        return repr(dtype)


class ParseInt(Op):
    """Decimal digits, as WebDataset's ``.cls`` holds them, to a whole number.

    A batch is an array of shape ``(samples,)``. A sign before the digits and blanks
    around them are taken; whatever else makes the sample a bad one.

    Args:
        field: default: cls, cls2, class, count, index, inx or id.
        dtype: "int64", or another of int8 to int64 and uint8 to uint64; a number
            that does not fit raises `leat.InvalidArgument`.
    """

    _name = "parse_int"

    def __init__(
        self, field: str | None = None, to: str | None = None, *, dtype: Any = "int64"
    ) -> None:
        params = {"dtype": self._choice("dtype", _dtype_name(dtype), _WHOLE)}
        super().__init__(params, field, to)


class ParseFloat(Op):
    """A decimal number such as ``-1.5e3``; inf and nan too.

    A batch is an array of shape ``(samples,)``. Blanks around it are taken;
    whatever else makes the sample a bad one.

    Args:
        field: must be given if there are several fields of bytes.
        dtype: "float64" or "float32".
    """

    _name = "parse_float"

    def __init__(
        self,
        field: str | None = None,
        to: str | None = None,
        *,
        dtype: Any = "float64",
    ) -> None:
        params = {"dtype": self._choice("dtype", _dtype_name(dtype), _REAL)}
        super().__init__(params, field, to)


class ParseText(Op):
    """UTF-8 to str; a batch is a list of them. Bytes that are not UTF-8 make the
    sample a bad one.

    Args:
        field: default: txt, text or transcript.
    """

    _name = "parse_text"

    def __init__(self, field: str | None = None, to: str | None = None) -> None:
        super().__init__({}, field, to)


class ParseJson(Op):
    """A number, a text or a list of numbers out of a JSON document.

    Numbers come as an array of shape ``(samples,)``, lists as ``(samples, length)``,
    lists of lists as ``(samples, rows, columns)``, texts as a list of str. Whole
    numbers are int64, those with a point or an exponent float64 and true and false
    bool, unless `dtype` says otherwise; without it, samples that mix these are an
    error. Several such ops on one field read it once.

    A sample is a bad one if its document is no JSON, has nothing at `path`, or holds
    an object, a null, uneven lists, a number beyond int64 or more than 65,536
    numbers there; or if it nests more than 256 deep.

    Args:
        path: where the value is: ``"a.b[0]"``, ``'a["b.c"]'``. None takes the whole
            document.
        field: default: json or jsn.
        dtype: int8 to int64, uint8 to uint64, float32, float64, bool or str. A
            number that does not fit raises `leat.InvalidArgument`.
        ragged: lists may differ in length; they come as `leat.Ragged`, always.
    """

    _name = "parse_json"

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
            _fail(self, f'path={path!r} must be a str such as "a.b[0]"')
        choices = (*_WHOLE, *_REAL, "bool", "str")
        params = {
            "path": path,
            "dtype": None
            if dtype is None
            else self._choice("dtype", _dtype_name(dtype), choices),
            "ragged": bool(ragged),
        }
        super().__init__(params, field, to)


class LoadNpy(Op):
    """An array as `numpy.save` writes it (.npy 1.0 to 3.0).

    A batch is an array of shape ``(samples, ...)`` and of the file's type: bool, int8
    to int64, uint8 to uint64, float16 to float64, complex64 or complex128. The first
    sample decides about shape and type; one that differs raises, and the error names
    both keys.

    Raises `leat.InvalidArgument` for arrays in Fortran order, big-endian ones, and
    such as hold Python objects, structures, texts or dates. A file that is damaged,
    or holds more than one array, is a bad sample.

    Args:
        field: default: npy.
        ragged: arrays may differ in their first dimension; they come as
            `leat.Ragged`, always.
    """

    _name = "load_npy"

    def __init__(
        self, field: str | None = None, to: str | None = None, *, ragged: bool = False
    ) -> None:
        super().__init__({"ragged": bool(ragged)}, field, to)


class Python(Op):
    """A function of yours, in the threads that decode.

        def augment(image, rng):            # (H, W, 3) uint8, as DecodeImage gives it
            return albumentation(image=image)["image"]

        ops = [DecodeImage(layout="HWC"), Python(augment)]

    It gets what the ops before made of the field: an array of its own, or a str; if
    there are none, the bytes of the field, or the column of the catalogue that `field`
    names: a number as an array of shape ``()``, a text as a str. It gives back an array, a torch tensor, a
    PIL image, a number or a str. Other ops may follow it: functions of yours, and
    Leat's own for images, which take a uint8 array in the layout of `DecodeImage`
    (HWC if the chain has none) and keep it.

    **Draws.** A function with a parameter ``rng`` gets a `numpy.random.Generator`
    that depends on the seed, the epoch and the sample alone. One that draws from the
    generators of `random`, NumPy or torch says ``global_rng=True``: they are seeded
    likewise before each call, and such functions run one after another. Then threads,
    world size and resume change no draw.

    **Threads.** Several threads call it at once, each with another sample. While it
    runs Python code they take turns (the GIL); NumPy, Pillow, OpenCV and torch let
    go of it in most of their work. What takes longer than the training step in
    Python alone belongs into processes: see `leat.torch.DataLoader`.

    **Errors.** What it raises, `next()` raises, with its traceback and a note that
    names the sample.

    Args:
        function: of one value, and of ``rng`` if it draws.
        per: ``"sample"``; or ``"batch"``: it gets the batch as the loader delivers
            it (or the one field that `field` names), in the thread that calls
            `next()`, and gives back what is delivered instead.
        field: the field; None for that of the op before, or the only one.
        to: the name of its field from there on.
        ragged: the first dimension may differ from sample to sample: `leat.Ragged`.
        global_rng: it draws from the process's own generators.
    """

    _name = "python"

    def __init__(
        self,
        function: Callable[..., Any],
        per: str = "sample",
        *,
        field: str | None = None,
        to: str | None = None,
        ragged: bool = False,
        global_rng: bool = False,
    ) -> None:
        super().__init__({"ragged": True} if ragged else {}, field, to)
        if not callable(function):
            _fail(self, f"{function!r} cannot be called")
        self._choice("per", per, ("sample", "batch"))
        if per == "batch" and (ragged or to is not None):
            _fail(self, 'ragged= and to= are for per="sample"')
        self.function = function
        self.per = per
        self.global_rng = global_rng

    def __repr__(self) -> str:
        name = getattr(self.function, "__qualname__", repr(self.function))
        return f"Python({name}, per={self.per!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Python):
            return NotImplemented
        mine = (self.function, self.per, self.global_rng, self.to_spec())
        return mine == (other.function, other.per, other.global_rng, other.to_spec())

    def __hash__(self) -> int:
        return hash((self.function, self.per))


def functions_of(ops: Iterable[Op]) -> list[Any]:
    """Of the ops that call one for each sample, as the engine calls them."""
    return [
        _functions.call_per_sample(op.function, place, op.global_rng)
        for place, op in enumerate(ops)
        if isinstance(op, Python) and op.per == "sample"
    ]


def listed(ops: Iterable[Op]) -> list[Op]:
    """Refuses a text, which is a list of letters."""
    if isinstance(ops, str):
        raise InvalidArgument(
            f"ops={ops!r} is a text; write a list of leat.ops, such as "
            f"[leat.ops.DecodeImage(), leat.ops.Resize(224)]"
        )
    return list(ops)


def specs_to_json(ops: Iterable[Op]) -> str:
    """The ops as one JSON list, as the engine reads them."""
    specs = []
    for op in ops:
        if not isinstance(op, Op):
            raise InvalidArgument(
                f"{op!r} is no op; write leat.ops.Resize(224) or another of "
                f"leat.ops"
            )
        if not (isinstance(op, Python) and op.per == "batch"):
            specs.append(op.to_spec())
    return json.dumps(specs)


class Chain:
    """Ops as a function from the bytes of one field to its array, or its str.

        chain = Chain([DecodeImage(), RandomResizedCrop(224)])
        array = chain(data, seed=0, epoch=3, sample=81)

    gives what a loader with these ops and this seed delivers. Any number of
    threads may call it; Python runs on while it works.
    """

    def __init__(self, ops: Iterable[Op]) -> None:
        self.ops: Tuple[Op, ...] = tuple(listed(ops))
        self._program = _native.Program(specs_to_json(self.ops), functions_of(self.ops))

    def __call__(
        self, data: bytes, seed: int = 0, epoch: int = 0, sample: int = 0
    ) -> np.ndarray | str:
        return self._program.run(data, seed, epoch, sample)

    def __repr__(self) -> str:
        return f"Chain({list(self.ops)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.ops,))
