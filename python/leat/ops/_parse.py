"""Ops that read numbers, texts, JSON and arrays."""

from __future__ import annotations

from typing import Any

from leat.ops._op import REAL, WHOLE, Op, dtype_name, fail


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
        params = {"dtype": self._choice("dtype", dtype_name(dtype), WHOLE)}
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
        params = {"dtype": self._choice("dtype", dtype_name(dtype), REAL)}
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
