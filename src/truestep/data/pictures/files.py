"""Image files: their paths, classes and pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from truestep.data._files import package
from truestep.errors import BadData

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})

_MODES = {1: "L", 3: "RGB"}


def labelled_files(folder: Path, classes: Sequence[str] | None) -> tuple[list[Path], list[int], tuple[str, ...]]:
    """Return the image files of a folder per class, their labels, and the classes.

    Files with a name that begins with a dot, or with a suffix other than those of images, are skipped.

    Args:
        folder: one folder per class; images may be at any depth in it.
        classes: the classes, in the order of their labels; None takes the names of the folders, sorted.

    Raises:
        BadData: a missing folder, no class, an image outside the folders of classes, a class without images, or a
            folder that is not among `classes`.
    """
    if not folder.is_dir():
        raise BadData("the folder does not exist", path=folder, remedy="check the path")
    inside = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    folders = [entry for entry in inside if entry.is_dir()]
    strays = [entry for entry in inside if entry.suffix.lower() in SUFFIXES and entry.is_file()]
    if strays or not folders:
        raise BadData(
            "images lie outside the folders of classes" if strays else "the folder holds no folders",
            path=folder,
            where=strays[0].name if strays else "",
            expected="expected one folder per class with its images",
            remedy="move each image into the folder of its class",
        )
    names = tuple(entry.name for entry in folders) if classes is None else tuple(classes)
    files: list[Path] = []
    labels: list[int] = []
    for entry in folders:
        if entry.name not in names:
            raise BadData(
                f"folder {entry.name!r} is not among the classes",
                path=folder,
                expected=f"expected {', '.join(names[:8])}",
                remedy="add it to classes=, or move it away",
            )
        own = sorted(
            path
            for path in entry.rglob("*")
            if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
        )
        if not own:
            raise BadData(
                f"class {entry.name!r} has no images",
                path=entry,
                expected=f"expected files named {', '.join(sorted(SUFFIXES))}",
                remedy="add its images, or move the folder away",
            )
        files += own
        labels += [names.index(entry.name)] * len(own)
    return files, labels, names


def pixels_of(path: Path, channels: int, size: tuple[int, int] | None) -> torch.Tensor:
    """Return the pixels of an image file, rotated by its EXIF orientation: uint8 of shape (channels, height, width).

    Args:
        path: a file that Pillow can open.
        channels: 3 for colours, 1 for grey.
        size: height and width; the image is scaled to cover them, and cropped at its centre. None keeps its size.

    Raises:
        BadData: the file is not an image, is truncated, or has more than 8 bits per channel.
        PackageMissing: Pillow is not installed.
    """
    import numpy

    kinds = package("PIL.Image", "an image")
    operations = package("PIL.ImageOps", "an image")
    try:
        with kinds.open(path) as opened:
            deep = opened.mode[:1] in ("I", "F")
            image = operations.exif_transpose(opened)
            if image.mode == "P":
                image = image.convert("RGBA")
            image = image.convert(_MODES[channels])
            if size is not None:
                image = operations.fit(image, (size[1], size[0]), method=kinds.Resampling.BILINEAR)
            values = torch.from_numpy(numpy.array(image))
    except Exception as error:  # decoders raise all kinds of errors on damaged files
        raise BadData(
            "the image cannot be decoded",
            path=path,
            expected=f"Pillow says: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            remedy="download the file again, or move it away",
        ) from error
    if deep:
        raise BadData(
            "the image has more than 8 bits per channel",
            path=path,
            expected="expected 8 bits per channel",
            remedy="convert it to 8 bits, scaled by the range of its pixels",
        )
    return values.unsqueeze(0) if channels == 1 else values.permute(2, 0, 1).contiguous()
