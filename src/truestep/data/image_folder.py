"""Images in one folder per class: decoded on access, or packed once into one memory-mapped file."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Self, overload

import torch
from torch.utils.data import Dataset

from truestep.data._files import package
from truestep.data._samples import Transform, checked, parted
from truestep.data.pictures import packed
from truestep.data.pictures.files import labelled_files, pixels_of
from truestep.data.pictures.pixels import Numbers, Pixels
from truestep.data.preprocessing.of_pictures import Pictures
from truestep.data.preprocessing.preparation import Preparation, name_of
from truestep.data.tensor_set import TensorSet
from truestep.errors import BadData

Size = int | tuple[int, int]


class ImageFolder(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Images that are decoded on access, best by the workers of a loader.

    Args:
        files: the image files.
        labels: int64, shape (files,).
        classes: names of the classes.
        size: height and width after scaling and cropping; None keeps the size of each image.
        pixels: converts bytes to numbers.
        channels: 3 for colours, 1 for grey.
        transform: called with one image, after `pixels`; returns its replacement.
        prepared: the preprocessing, for new files.
    """

    def __init__(
        self,
        files: Sequence[Path],
        labels: torch.Tensor,
        classes: Sequence[str],
        size: tuple[int, int] | None,
        pixels: Pixels,
        channels: int,
        transform: Transform | None,
        prepared: Pictures | None = None,
    ) -> None:
        self.files = list(files)
        self.labels = labels
        self.classes = tuple(classes)
        self.transform = transform
        self._size = size
        self._pixels = pixels
        self._channels = channels
        self._prepared = prepared

    @property
    def preparation(self) -> Preparation | None:
        """The preprocessing of this set, for new files; None if it cannot be described."""
        made = copy.copy(self._prepared)
        if made is not None:
            made.transform = name_of(self.transform)
        return made

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        number = checked(index, len(self))
        image = self._pixels(pixels_of(self.files[number], self._channels, self._size).unsqueeze(0))[0]
        return image if self.transform is None else self.transform(image), self.labels[number]

    def split(self, part: float, *, seed: int | None) -> tuple[Self, Self]:
        """Return two sets without a common sample.

        Args:
            part: size of the first set: a float in (0, 1) as a fraction of the samples, an int as their number.
            seed: draws the first set at random; None takes the first samples, which are those of the first classes.

        Raises:
            BadData: one of the sets is empty.
        """
        first, second = parted(len(self), part, seed)
        return self._part(first), self._part(second)

    def _part(self, indices: torch.Tensor) -> Self:
        made = copy.copy(self)
        made.files = [self.files[index] for index in indices.tolist()]
        made.labels = self.labels[indices]
        return made

    def describe(self) -> str:
        """Return one line with the number and the size of the images."""
        size = "their own sizes" if self._size is None else f"{self._size[0]} by {self._size[1]} pixels"
        return f"{len(self):,} images of {size}, {self._channels} channels; {len(self.classes)} classes; on disk"


@overload
def images(
    folder: str | Path,
    *,
    size: Size | None = None,
    channels: int = 3,
    dtype: torch.dtype | str = torch.float32,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    transform: Transform | None = None,
    classes: Sequence[str] | None = None,
    pack: None = None,
) -> ImageFolder: ...


@overload
def images(
    folder: str | Path,
    *,
    size: Size | None = None,
    channels: int = 3,
    dtype: torch.dtype | str = torch.float32,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    transform: Transform | None = None,
    classes: Sequence[str] | None = None,
    pack: str | Path,
) -> TensorSet: ...


def images(
    folder: str | Path,
    *,
    size: Size | None = None,
    channels: int = 3,
    dtype: torch.dtype | str = torch.float32,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    transform: Transform | None = None,
    classes: Sequence[str] | None = None,
    pack: str | Path | None = None,
) -> ImageFolder | TensorSet:
    """Read images from one folder per class.

    Without `pack` an image is decoded on each access: use a loader with workers. With `pack` all images are decoded
    once and written to one file of bytes, which is mapped and read a whole batch at a time, without workers; the file
    is used again as long as the folder, `size`, `channels` and `classes` are the same.

    Args:
        folder: one folder per class, with images at any depth: bmp, gif, jpeg, pgm, png, ppm, tiff, webp.
        size: height and width, or one number for both: images are scaled to cover it and cropped at their centre. None
            keeps the size of each image.
        channels: 3 for colours, 1 for grey.
        dtype: floating dtype of the images, or its name; uint8 gives the bytes.
        mean: mean of pixels in [0, 1], which is subtracted: one number, or one per channel such as ImageNet's
            (0.485, 0.456, 0.406).
        std: standard deviation, the divisor after that; ImageNet's are (0.229, 0.224, 0.225).
        transform: called with the images of a whole batch with `pack`, with one image without it.
        classes: the classes, in the order of their labels; None takes the names of the folders, sorted.
        pack: the file to write; its size is channels * height * width bytes per image.

    Returns:
        A set of images, `dtype` of shape (channels, height, width), and labels, int64 of shape ().

    Raises:
        BadData: no such folder, no classes, a class without images, an image that cannot be decoded.
        PackageMissing: Pillow is not installed.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from truestep import data
    >>> with TemporaryDirectory() as folder:
    ...     for name, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
    ...         Path(folder, name).mkdir()
    ...         Image.new("RGB", (4, 3), colour).save(Path(folder, name, "1.png"))
    ...     made = data.images(folder, size=2)
    ...     made.classes, made[1][0][:, 0, 0], made[1][1]
    (('blue', 'red'), tensor([1., 0., 0.]), tensor(1))
    """
    folder = Path(folder)
    package("PIL.Image", "a folder of images")
    if channels not in (1, 3):
        raise BadData(f"channels must be 3 for colours or 1 for grey, got {channels!r}", remedy="pass 3 or 1")
    pixels = Pixels(channels, dtype, mean, std)
    both = _height_and_width(size)
    files, labels, names = labelled_files(folder, classes)
    prepared = Pictures(channels, both, scaled=both is not None, dtype=dtype, mean=mean, std=std, classes=names)
    if pack is None:
        numbers = torch.tensor(labels, dtype=torch.int64)
        return ImageFolder(files, numbers, names, both, pixels, channels, transform, prepared)
    held = packed.opened(Path(pack), files, labels, packed.origin(folder, files, names, channels, both))
    if both is None:  # all have the size of the file
        prepared.size, prepared.scaled = (held[0].shape[-2], held[0].shape[-1]), False
    return TensorSet(held, transform=transform, classes=names, decode=pixels, preparation=prepared)


def _height_and_width(size: Size | None) -> tuple[int, int] | None:
    both = (size, size) if isinstance(size, int) else size
    if both is not None and (len(both) != 2 or min(both) < 1):
        raise BadData(
            f"size must be a positive integer or (height, width), got {size!r}", remedy="pass size=224, or (224, 224)"
        )
    return both
