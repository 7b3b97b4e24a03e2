"""Operations on the fields of a sample, from bytes to an array.

    ops = [DecodeImage(), RandomResizedCrop(224), RandomHorizontalFlip(),
           Normalize(IMAGENET_MEAN, IMAGENET_STD)]

makes float32 arrays of shape (3, 224, 224). Arrays are CHW unless you give `DecodeImage`
`layout="HWC"`, and uint8 until `Normalize` or `Cast` makes float32. Ops that move pixels
come before those two, except for `PadTo`, which comes last.

Some ops read a field of bytes: `DecodeImage`, `DecodeMask`, `ParseInt`, `ParseFloat`,
`ParseText`, `ParseJson`, `ParseBoxes`, `ParseKeypoints`, `LoadNpy`, `LoadMdsArray`,
`LoadLitdataArray` and `ParseFeature`. Those that parse text can also read a text of the
catalogue, which `field` has to name. Every op takes `to`, the new name of its field.

**Ops see a sample.** All other ops change decoded fields. An op without `field` changes
every field that it applies to: an op that moves pixels moves all pictures of the sample, by
one draw, and an op that changes colours or numbers changes all images. So

    ops = [DecodeImage("photo"), DecodeMask("labels"), RandomResizedCrop(224),
           RandomHorizontalFlip(), Normalize(IMAGENET_MEAN, IMAGENET_STD)]

cuts the same part out of image and mask, which must have the same size, and mirrors both or
neither; boxes and keypoints move with them. Decode all fields first: a random op that moves
pixels of one picture of a sample, and not those of another, raises `leat.InvalidArgument`,
and so does one kind of random op that is written for two images, once for each, unless you
give it ``independent=True``. The op then draws separately for each of its fields, for
example for two views of one picture.

An op that reads bytes takes the field that `field` names. Without `field` it takes the only
field, or the one with a usual name: for images jpg, jpeg, png, webp, tif, tiff, image and
data; for the others WebDataset's extensions, which each op lists. So

    ops = [DecodeImage(), ParseInt(), ParseJson("box", to="box"), ParseText()]

reads tar shards with .jpg, .cls, .json and .txt. `DecodeImage` names its field
`image`, the others keep the name.

A random op depends only on the seed, the epoch and the sample: not on threads, on the world
size, or on the position at which a run was resumed.
"""

from leat.ops._augment import (
    AugMix,
    AutoAugment,
    RandAugment,
    RandomErasing,
    TrivialAugmentWide,
)
from leat.ops._chain import Chain, listed, specs_to_json
from leat.ops._colour import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from leat.ops._decode import DecodeImage, DecodeMask
from leat.ops._documents import Documents
from leat.ops._geometry import (
    CenterCrop,
    FiveCrop,
    Letterbox,
    Pad,
    PadTo,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
    TenCrop,
)
from leat.ops._infill import FillInTheMiddle
from leat.ops._mix import CutMix, MixUp, RandomChoice
from leat.ops._numbers import IMAGENET_MEAN, IMAGENET_STD, Cast, Normalize
from leat.ops._op import Op
from leat.ops._parse import (
    LoadLitdataArray,
    LoadMdsArray,
    LoadNpy,
    ParseBoxes,
    ParseFeature,
    ParseFloat,
    ParseInt,
    ParseJson,
    ParseKeypoints,
    ParseText,
)
from leat.ops._python import Filter, Python

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "AugMix",
    "AutoAugment",
    "Cast",
    "CenterCrop",
    "Chain",
    "ColorJitter",
    "CutMix",
    "DecodeImage",
    "DecodeMask",
    "Documents",
    "FillInTheMiddle",
    "Filter",
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "Letterbox",
    "LoadLitdataArray",
    "LoadMdsArray",
    "LoadNpy",
    "MixUp",
    "Normalize",
    "Op",
    "Pad",
    "PadTo",
    "ParseBoxes",
    "ParseFeature",
    "ParseFloat",
    "ParseInt",
    "ParseJson",
    "ParseKeypoints",
    "ParseText",
    "Python",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "TenCrop",
    "TrivialAugmentWide",
    "specs_to_json",
]
