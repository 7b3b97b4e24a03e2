"""A loader's introduction on the logger ``leat``, once, as its first epoch begins.

A line at INFO tells the data it reads, the order, and the treatment of the tail. At
WARNING: samples that are lost or doubled though nobody asked for it. If the length of an
epoch is known only at its end, the tail is told then.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from leat.ops import DecodeImage, DecodeMask, LoadNpy, Op, ParseBoxes, ParseKeypoints, Python, Resize

logger = logging.getLogger("leat")

_MUCH = 0.05
"""A share of the samples: more is dropped unasked only with a warning."""

_ORDERS = {
    "none": "in the samples' order",
    "full": "full shuffle",
    "block": "shuffle in blocks",
    "stream": "shuffle as a stream",
}

_said: set[str] = set()


_ROWS = {"rows": "row", "micro-batches": "micro-batch"}
"""The units of steps that have several samples each, and the word for one."""


class Length(NamedTuple):
    """The length of an epoch, and of a step, in what steps are counted in."""

    total: int
    step: int
    unit: str

    @property
    def rest(self) -> int:
        """The part that does not fill the last step."""
        return self.total % self.step


class Introduction:
    """The facts of a loader that are logged as its first epoch begins, or as soon as they are
    known.

    Args:
        url: what it reads.
        options: of the loader, as the engine got them.
        drawn_by: what gives the order, if that is no shuffle of the loader's; else empty.
        is_end_said: whether the user said what becomes of an incomplete step.
        ops: of the loader.
    """

    def __init__(
        self, url: str, options: dict[str, Any], *, drawn_by: str, is_end_said: bool, ops: Sequence[Op] = ()
    ) -> None:
        self._name = shown(url)
        self._of_ops = [text for text in (drawn_apart(ops), placed_apart(ops), blended_labels(ops)) if text]
        self._drawn = drawn_by
        self._has_seed = not drawn_by
        if options["weights"] is not None:
            self._drawn = f"{options['samples_per_epoch']:,} an epoch drawn by weights"
        if options["mix"] is not None:
            self._drawn = _mixed(options["mix"])
        self._pads = options["pad"]
        self._drops = drops_last(options)
        self._drops_unasked = self._drops and not is_end_said
        self._has_said_line = False
        self._has_said_tail = False
        self._has_said_all = False

    def say(self, loader: Any) -> None:
        """Logs what is known by now and was not said yet, unless this process has logged the
        same before. As each epoch begins, and as it ends."""
        if self._has_said_all:
            return
        state = loader.state_dict()
        length = _length_of(loader, state)
        tail = "" if length is None else self._tail(length)
        if not self._has_said_line:
            order = self._drawn or _ORDERS[state["shuffle"]]
            if state["shuffle"] != "none" and self._has_seed:
                order += f", seed {state['seed']}"
            parts = [_what(loader._opened.known_dataset()), _who(loader), tail, order]
            once(logging.INFO, f"{self._name}: {'; '.join(filter(None, parts))}")
            for text in self._of_ops:
                once(logging.WARNING, f"{self._name}: {text}")
            self._has_said_line = True
        elif length is not None and not self._has_said_tail:
            parts = [_counted(length.total, "sample", "samples"), tail]
            once(logging.INFO, f"{self._name}: {'; '.join(filter(None, parts))}")
        if length is not None:
            self._has_said_tail = True
            # Epochs of a sampler may differ in length.
            self._has_said_all = self._warn(length, loader) or loader._sampled is None

    def _warn(self, length: Length, loader: Any) -> bool:
        """Logs what is lost or doubled, and returns whether anything is."""
        total, step, unit = length
        text = ""
        if self._drops_unasked and length.rest > _MUCH * total:
            text = (
                f"each epoch leaves out {length.rest:,} of {total:,} {unit} "
                f"({100 * length.rest / total:.0f} %), which do not fill a step of {step:,}: drop_last=True "
                "says that this is meant, drop_last=False or train=False keeps them"
            )
        if self._pads and length.rest and "valid" not in loader._native.field_names:
            text = (
                f"drop_last=\"pad\" fills each epoch's last step with {_twice(step - length.rest)}, "
                'and nothing in a batch tells which: name "valid" in fields=, '
                "or give ids=True"
            )
        if text:
            once(logging.WARNING, f"{self._name}: {text}")
        return bool(text)

    def _tail(self, length: Length) -> str:
        rest = length.rest
        if not rest:
            return ""
        if self._pads:
            return f"fills up the last step with {_twice(length.step - rest)}"
        counted = f"{rest:,}"
        if length.unit in _ROWS:
            counted = _counted(rest, _ROWS[length.unit], length.unit)
        return f"drops {counted} of the last step" if self._drops else f"a last step of {counted}"


def drops_last(options: dict[str, Any]) -> bool:
    """Whether the engine leaves out what does not fill the last step."""
    drops = options["drop_last"]
    return options["shuffle"] != "none" if drops is None else bool(drops)


def _length_of(loader: Any, state: dict[str, Any]) -> Length | None:
    """The length of the epoch that was begun; None while nobody knows it."""
    options, sampled, step = loader._opened.options, loader._sampled, state["global_batch_size"]
    if sampled is not None:
        rows = sampled.rows_of_a_step
        return Length(sampled.length, step, "samples") if rows is None else Length(sampled.length, rows, sampled.unit)
    if options["sampler"]:  # Told to the engine by leat.torch, window by window.
        return None
    if options["weights"] is not None:
        return Length(options["samples_per_epoch"], step, "draws")
    count = state.get("samples_per_epoch") or state.get("samples")
    return None if count is None else Length(count, step, "samples")


class Classes:
    """The lists of classes that this process reads."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, ...], str] = {}

    def meet(self, url: str, classes: Sequence[str]) -> None:
        """Warns once if this list and a former one seem to mean the same classes (they share more
        than half of the smaller list's names), and number one of them differently."""
        if not classes or (names := tuple(classes)) in self._met:
            return
        numbers = {name: number for number, name in enumerate(names)}
        for former, place in list(self._met.items()):
            shared = [(name, number) for number, name in enumerate(former) if name in numbers]
            moved = [(name, number) for name, number in shared if numbers[name] != number]
            if moved and 2 * len(shared) > min(len(names), len(former)):
                name, number = moved[0]
                here = shown(url)
                logger.warning(
                    "%s: class %r has label %d here, and %d in %s: the two have other lists of classes, and "
                    "each is numbered by itself. If one model sees both, give both one list, such as "
                    "leat.Dataset(%r, classes=FIRST.classes)",
                    here, name, numbers[name], number, place, here,
                )  # fmt: skip
                break
        self._met[names] = shown(url)


classes_met = Classes()


_FOLLOWERS = (DecodeMask, ParseBoxes, ParseKeypoints)


def drawn_apart(ops: Sequence[Op]) -> str:
    """A warning of a function that draws for one field of several that belong together, or ""."""
    followers = [f"what {type(op).__name__} reads" for op in ops if isinstance(op, _FOLLOWERS)]
    for place, op in enumerate(ops):
        if not isinstance(op, Python) or not op.draws_alone:
            continue
        if left := followers or _other_images(ops, place):
            return (
                f"{op!r} draws and sees one field alone, so {left[0]} stays as it is: "
                "give it all, with fields=, or say independent=True if it moves no pixels"
            )
    return ""


def _other_images(ops: Sequence[Op], place: int) -> list[str]:
    """The images that a function does not see, if it gets one of several."""
    made_by: dict[str, Op] = {}  # The first op of each field.
    last = ""
    for op in ops[: place + 1]:
        if op.per == "batch" or (isinstance(op, Python) and op.fields):
            continue
        if not isinstance(op, Python):  # It changes this one last, if it changes several.
            last = next((name for name in reversed(made_by) if isinstance(made_by[name], DecodeImage)), last)
        name = op._field or last
        if op._reads or name not in made_by:
            last = op._to or ("image" if isinstance(op, DecodeImage) else op._field or op._name)
            made_by[last] = op
        else:
            last = op._to or name
            made_by[last] = made_by.pop(name)
    if ops[place].per == "batch":
        last = ops[place]._field or ""
    if not isinstance(seen := made_by.get(last), DecodeImage):
        return []
    others = [op for op in ops if isinstance(op, DecodeImage) and op is not seen]
    return [f"the image '{op._to or 'image'}'" for op in others]


def placed_apart(ops: Sequence[Op]) -> str:
    """A warning of an op that is not random and moves two pictures of a sample apart, or "".

    Random ops raise there."""
    decoders: dict[str, Op] = {}  # By field, and what moves its pixels.
    movers: dict[str, list[Op]] = {}
    for op in ops:
        if isinstance(op, (DecodeImage, DecodeMask)):
            name = op._to or ("mask" if isinstance(op, DecodeMask) else "image")
            decoders[name], movers[name] = op, []
            continue
        if op._field in decoders and op._to and op.per == "sample":
            decoders[op._to], movers[op._to] = decoders.pop(op._field), movers.pop(op._field)
        if op._moves_pixels and not op._params.get("independent"):
            for name in decoders:
                if op._field is None or name in (op._field, op._to):
                    movers[name].append(op)
    for (one, first), (other, second) in itertools.combinations(decoders.items(), 2):
        if type(first) is type(second) and first._field == second._field:
            continue  # Two views of one picture.
        if mover := _moves_apart(movers[one], movers[other]):
            of, left = (one, other) if any(mover is op for op in movers[one]) else (other, one)
            return (
                f"{mover!r} moves the pixels of {of!r}, and those of {left!r} do not move alike: decode both "
                f"first, and put {type(mover).__name__} once behind them, without field=. If both show the same "
                "part all the same, or do not belong together, this is as it should be"
            )
    return ""


def _moves_apart(one: Sequence[Op], other: Sequence[Op]) -> Op | None:
    """The first op that moves two pictures apart, or None. A resize keeps the whole picture, so resizes
    alone do not move them apart, nor do those after all else."""
    while one and isinstance(one[-1], Resize):
        one = one[:-1]
    while other and isinstance(other[-1], Resize):
        other = other[:-1]
    alike = 0
    for mine, its in zip(one, other):
        if _place(mine) != _place(its):
            break
        alike += 1
    apart = [*one[alike:], *other[alike:]]
    return next((op for op in apart if not isinstance(op, Resize)), None)


def _place(op: Op) -> tuple[str, dict[str, Any]]:
    """The parameters that decide where a pixel goes. Two that resize alike may interpolate otherwise."""
    return op._name, {"size": op._params["size"]} if isinstance(op, Resize) else op._params


_LABELS = re.compile(r"(masks?|labels?|seg\w*|annotations?)\d*")
_PERHAPS_LABELS = re.compile(r"(targets?|gt)\d*")
"""Words in the names of fields. The second list counts for pictures in grey alone."""


def blended_labels(ops: Sequence[Op]) -> str:
    """A warning of a picture that seems to hold labels, between which an op would blend, or ""."""
    decoders = [op for op in ops if isinstance(op, DecodeImage)]
    for decoder in decoders if len(decoders) > 1 else ():
        names = {decoder._field, decoder._to or "image"}
        words = {word for name in names if name for word in re.split(r"[^a-z0-9]+", name.lower())}
        kinds = (_LABELS,) if decoder._params["mode"].startswith("RGB") else (_LABELS, _PERHAPS_LABELS)
        if not any(kind.fullmatch(word) for kind in kinds for word in words):
            continue
        for op in ops:
            how = op._params.get("interpolation", "nearest")
            if how != "nearest" and (op._field is None or op._field in names):
                return (
                    f"{decoder!r} reads what is named like labels as a picture, and {op!r} blends pixels "
                    f"({how}), so 0 and 20 become all that lies between: DecodeMask(...) takes the nearest "
                    "label. If its numbers are brightness, this is as it should be"
                )
    return ""


class LeftBehind:
    """Arrays of `LoadNpy` that stay as they are while an op moves the pictures of their sample.

    Args:
        url: what the loader reads.
        ops: of the loader.
    """

    def __init__(self, url: str, ops: Sequence[Op]) -> None:
        pictures = [op for op in ops if isinstance(op, (DecodeImage, DecodeMask))]
        names = {op._to or ("mask" if isinstance(op, DecodeMask) else "image") for op in pictures}
        movers = [op for op in ops if op._moves_pixels and (op._field is None or op._field in names)]
        moved_by_user = {name for op in ops if isinstance(op, Python) for name in op.fields}
        self._name = shown(url)
        self._picture = next((op._to or "image" for op in pictures if isinstance(op, DecodeImage)), "mask")
        self._mover = movers[0] if pictures and movers else None
        self._readers: dict[str, LoadNpy] = {}
        for op in ops if self._mover else ():
            name = op._to or op._field or "npy"
            if isinstance(op, LoadNpy) and name not in moved_by_user:
                self._readers[name] = op

    def meet(self, fields: Sequence[tuple[str, Any]]) -> None:
        """Warns of those among the engine's first fields that have a height and a width."""
        for name, value in fields:
            reader = self._readers.pop(name, None)
            if reader is None:
                continue
            values, shapes = (value[0], value[2]) if isinstance(value, tuple) else (value, None)
            dimensions = values.ndim - (0 if isinstance(value, tuple) else 1) if shapes is None else shapes.shape[1]
            if dimensions < 2:
                continue
            if dimensions == 2 and values.dtype.kind in "iub":
                remedy = f"DecodeMask({(reader._field or name)!r}) reads it as a mask, which moves with its picture"
            else:
                remedy = f"move both in one function, Python(…, fields=({self._picture!r}, {name!r})), in its place"
            once(
                logging.WARNING,
                f"{self._name}: {self._mover!r} moves the pixels of {self._picture!r}, and {name!r}, which "
                f"{reader!r} reads, stays as it is: {remedy}. If the array is no map of the picture, this is as "
                "it should be",
            )
        self._readers.clear()


def once(level: int, text: str) -> None:
    """Logs the line, unless this process has logged the same before."""
    if text not in _said:
        _said.add(text)
        logger.log(level, "%s", text)


def shown(url: str) -> str:
    """Without what may be a secret: a user, a password, the parameters of a signed URL. In an
    abfss:// URL a container stands where others have the user, and stays."""
    return re.sub(r"(?<!\babfss:)//[^/@]*@|//[^/@]*:[^/@]*@", "//", url).split("?")[0]


def _what(dataset: Any) -> str:
    if dataset is None:
        return "samples not known yet: the first epoch indexes its shards"
    words = [_counted(len(dataset), "sample", "samples")]
    if dataset.classes:
        words.append(_counted(len(dataset.classes), "class", "classes"))
    age = getattr(dataset, "catalogue_age", None)
    if age is not None:
        words.append(f"catalogue {_ago(age)} (refresh=)")
    return ", ".join(words)


def _mixed(mix: dict[str, Any]) -> str:
    total = sum(weight for _, _, weight, _, _ in mix["sources"])
    shares = [f"{name} {weight / total:.0%}" for name, _, weight, _, _ in mix["sources"]]
    told = ", ".join(shares) if len(shares) <= 4 else f"{len(shares)} sources"
    return f"a mix of {told} ({mix['composition']})"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _twice(count: int) -> str:
    return _counted(count, "sample that comes twice", "samples that come twice")


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"of {seconds / length:.0f} {unit} ago"
    return "of this minute"


def _who(loader: Any) -> str:
    said = f"rank {loader.rank} of {loader.world_size}"
    tasks = os.environ.get("SLURM_NTASKS", "1")
    if loader.world_size == 1 and tasks.isdigit() and int(tasks) > 1:
        said += f" (Slurm's job has {tasks} tasks, but srun did not start this process)"
    if (mesh := loader._place.mesh) is not None:
        said += f" ({mesh.processes} processes: {mesh._words})"
    return said

