"""The idx files of the MNIST family."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from truestep.data._files import contents
from truestep.data._samples import Transform
from truestep.data.pictures.pixels import Numbers, Pixels, fits_in_memory
from truestep.data.preprocessing.of_pictures import Pictures
from truestep.data.tensor_set import TensorSet
from truestep.errors import BadData, UnscaledImages

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
"""Numpy dtypes by the third byte of the magic number."""


def idx(
    images: str | Path,
    labels: str | Path | None = None,
    *,
    dtype: torch.dtype | str = torch.float32,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    transform: Transform | None = None,
    classes: Sequence[str] | None = None,
) -> TensorSet:
    """Read images and their labels from idx files: MNIST, FashionMNIST, KMNIST, EMNIST.

    Images of bytes are divided by 255 and normalized once, here. If the result does not fit in half of the free memory,
    the bytes are kept, and each batch is normalized to the same values when it is read.

    Args:
        images: a file, gzip or not. The beginning of the name is enough: "data/train-images" finds
            "data/train-images-idx3-ubyte.gz" if no other file name begins like that.
        labels: the file of labels, found in the same way; None for images alone.
        dtype: floating dtype of the images, or its name; uint8 gives the bytes. Images that are not bytes keep their
            dtype, and are not normalized.
        mean: mean of pixels in [0, 1], which is subtracted; MNIST's is 0.1307, FashionMNIST's 0.2860.
        std: standard deviation, the divisor after that; MNIST's is 0.3081, FashionMNIST's 0.3530.
        transform: called with the images of a whole batch, on the device of the data; returns their replacement.
        classes: names of the labels 0, 1, ...; None takes the numbers.

    Returns:
        A set of images, `dtype` of shape (1, height, width), and labels, int64 of shape ().

    Raises:
        BadData: no such file or several, a wrong magic number, a truncated file, different numbers of labels and
            images, a label without a class.

    Source: the format is described with MNIST, http://yann.lecun.com/exdb/mnist.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from truestep import data
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "x-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, *b"\\0\\0\\0\\1" * 3, 51]))
    ...     _ = (Path(folder) / "y-idx1-ubyte").write_bytes(bytes([0, 0, 8, 1, *b"\\0\\0\\0\\1", 7]))
    ...     data.idx(f"{folder}/x", f"{folder}/y")[0]
    (tensor([[[0.2000]]]), tensor(7))
    """
    source = _found(Path(images))
    held = read_idx(source)
    if not len(held):
        raise BadData("the file holds no samples", path=source, remedy="download the file again")
    _check_images(held, source)
    if held.dim() == 3:
        held = held.unsqueeze(1)
    decode = prepared = None
    if held.dtype == torch.uint8:
        prepared = _prepared(held, dtype, mean, std)
        pixels = Pixels(held.shape[1] if held.dim() == 4 else 1, dtype, mean, std)
        if pixels.dtype != torch.uint8:
            if fits_in_memory(pixels.bytes_for(held)):
                held = pixels(held)
            else:
                decode = pixels
    elif mean is not None or std is not None:
        raise BadData(
            f"only bytes are normalized, but the file holds {str(held.dtype).removeprefix('torch.')}",
            path=source,
            remedy="leave out mean and std, and normalize in transform=",
        )
    if labels is None:
        return TensorSet((held,), transform=transform, decode=decode, preparation=prepared)
    numbers, names = _labels(_found(Path(labels)), len(held), classes)
    return TensorSet((held, numbers), transform=transform, classes=names, decode=decode, preparation=prepared)


def _prepared(
    held: torch.Tensor, dtype: torch.dtype | str, mean: Numbers | None, std: Numbers | None
) -> Pictures | None:
    """Return the preprocessing of images of bytes, for new files; None if they are neither grey nor coloured."""
    if held.dim() != 4 or held.shape[1] not in (1, 3):
        return None
    _, channels, height, width = held.shape
    return Pictures(channels, (height, width), scaled=False, dtype=dtype, mean=mean, std=std)


def _check_images(held: torch.Tensor, source: Path) -> None:
    """Raise an error for images without pixels; warn of floats in the range of bytes."""
    if not held.numel():
        raise BadData(
            "the images have no pixels",
            path=source,
            expected=f"expected a height and a width, got shape {tuple(held.shape)}",
            remedy="download the file again",
        )
    if held.dtype.is_floating_point and float(held.min()) >= 0 and 16 < float(held.max()) <= 255:  # the range of bytes
        kind = str(held.dtype).removeprefix("torch.")
        warnings.warn(
            f"the images of {source} are {kind} up to {float(held.max()):g}, but are not scaled: divide them in "
            "transform=",
            UnscaledImages,
            stacklevel=3,
        )


def read_idx(path: Path) -> torch.Tensor:
    """Return the contents of an idx file, in the shape and dtype of the file.

    Raises:
        BadData: the file has another format, or is truncated.
    """
    import numpy

    held = contents(path)
    kind = _TYPES.get(held[2]) if len(held) >= 4 and held[:2] == b"\0\0" else None
    if kind is None:
        raise BadData(
            "the file is not an idx file",
            path=path,
            where="byte 0",
            expected=f"expected the magic number 00 00 08 and the number of dimensions, got {held[:4].hex(' ')}",
            remedy="pass the original file, gzip or not",
        )
    dimensions = held[3]
    begin = 4 + 4 * dimensions
    shape = [int.from_bytes(held[4 + 4 * at : 8 + 4 * at], "big") for at in range(dimensions)]
    size = math.prod(shape) * numpy.dtype(kind).itemsize
    if len(held) != begin + size or not dimensions:
        raise BadData(
            "the file is truncated" if len(held) < begin + size else "the file goes on after its data",
            path=path,
            where=f"byte {min(len(held), begin + size)}",
            expected=f"expected {begin + size} bytes for shape {tuple(shape)}, got {len(held)}",
            remedy="download the file again",
        )
    values: Any = numpy.frombuffer(held, dtype=kind, offset=begin).reshape(shape)
    return torch.from_numpy(values.astype(values.dtype.newbyteorder("=")))


def _found(path: Path) -> Path:
    """Return the file of that name, or the only one in its folder with a name that begins like that."""
    if path.is_file():
        return path
    if not path.parent.is_dir():
        raise BadData("the folder does not exist", path=path.parent, remedy="check the path")
    names = sorted(other.name for other in path.parent.iterdir() if other.is_file())
    candidates = [name for name in names if name.startswith(path.name) and name[len(path.name)] in "-._"]
    whole = [name for name in candidates if not name.endswith(".gz") or name.removesuffix(".gz") not in candidates]
    if len(whole) == 1:
        return path.parent / whole[0]
    if whole:
        raise BadData(
            f"{len(whole)} files begin with {path.name!r}",
            path=path.parent,
            expected=f"expected one, got {', '.join(whole[:4])}",
            remedy="pass the whole name",
        )
    raise BadData(
        f"no file begins with {path.name!r}",
        path=path.parent,
        expected=f"files in the folder: {', '.join(names[:8]) or 'none'}",
        remedy="check the path",
    )


def _labels(path: Path, count: int, classes: Sequence[str] | None) -> tuple[torch.Tensor, tuple[str, ...]]:
    labels = read_idx(path).to(torch.int64)
    if labels.dim() != 1 or len(labels) != count:
        raise BadData(
            "the number of labels differs from that of images",
            path=path,
            expected=f"expected shape ({count},), got {tuple(labels.shape)}",
            remedy="pass the labels of these images",
        )
    names = tuple(map(str, range(int(labels.max()) + 1))) if classes is None else tuple(classes)
    unknown = ((labels < 0) | (labels >= len(names))).nonzero()
    if len(unknown):
        index = int(unknown[0])
        raise BadData(
            f"label {int(labels[index])} has no class",
            path=path,
            where=f"index {index}",
            expected=f"expected 0 to {len(names) - 1}",
            remedy="pass a name for each class in classes=",
        )
    return labels, names
