"""Operations on the fields of a sample, from bytes to an array.

    ops = [DecodeImage(), RandomResizedCrop(224), RandomHorizontalFlip(),
           Normalize(IMAGENET_MEAN, IMAGENET_STD)]

makes float32 arrays of shape (3, 224, 224). Arrays are CHW unless `DecodeImage` is
told `layout="HWC"`, and uint8 until `Normalize` or `Cast` makes float32. Ops that
move pixels come before those two, but for `PadTo`, which comes last.

Some ops read a field of bytes: `DecodeImage`, `DecodeMask`, `ParseInt`, `ParseFloat`, `ParseText`,
`ParseJson`, `ParseBoxes`, `ParseKeypoints` and `LoadNpy`; of these those that parse also read a text of the
catalogue, which `field` has to name. Every op takes `to`, the name of its field from
there on.

**Ops see a sample.** All others change fields that were decoded before them. An op
without `field` changes every field that it is for: an op that moves pixels moves all
pictures of the sample, by one draw, and an op that changes colours or numbers changes
all images. So

    ops = [DecodeImage("photo"), DecodeMask("labels"), RandomResizedCrop(224),
           RandomHorizontalFlip(), Normalize(IMAGENET_MEAN, IMAGENET_STD)]

cuts the same part out of image and mask, which have to be of one size, and mirrors
both or none; boxes and keypoints go with them. Decode all fields first:
a random op that moves pixels of one picture of a sample, and not those of another,
raises `leat.InvalidArgument`, unless it says ``independent=True``. With that an op
draws for each of its fields by itself, as two views of one picture want it.

An op that reads bytes takes the field that `field` names, else the only one there
is, else the one with a usual name: for images jpg, jpeg, png, webp, tif, tiff,
image and data; for the others WebDataset's extensions, which each op lists. So

    ops = [DecodeImage(), ParseInt(), ParseJson("box", to="box"), ParseText()]

reads tar shards with .jpg, .cls, .json and .txt. `DecodeImage` names its field
`image`, the others keep the name.

A random op depends on the seed, the epoch and the sample, and on nothing else: not
on threads, world size or where a run was resumed.
"""

from leat.ops._augment import (
    AugMix,
    AutoAugment,
    RandAugment,
    RandomErasing,
    TrivialAugmentWide,
)
from leat.ops._chain import Chain, functions_of, listed, specs_to_json
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
from leat.ops._mix import CutMix, MixUp, RandomChoice
from leat.ops._numbers import IMAGENET_MEAN, IMAGENET_STD, Cast, Normalize
from leat.ops._op import Op
from leat.ops._parse import (
    LoadNpy,
    ParseBoxes,
    ParseFloat,
    ParseInt,
    ParseJson,
    ParseKeypoints,
    ParseText,
)
from leat.ops._python import Python

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
    "FiveCrop",
    "GaussianBlur",
    "Grayscale",
    "Letterbox",
    "LoadNpy",
    "MixUp",
    "Normalize",
    "Op",
    "Pad",
    "PadTo",
    "ParseBoxes",
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
    "functions_of",
    "specs_to_json",
]
