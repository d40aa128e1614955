"""Preprocessing of images: size, channels, mean and standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from truestep.data.pictures.files import pixels_of
from truestep.data.pictures.pixels import Numbers, Pixels, dtype_of
from truestep.data.preprocessing.preparation import Preparation, Prepared
from truestep.errors import BadInputs


class Pictures(Preparation):
    """Images as numbers of shape (channels, height, width).

    Args:
        channels: 3 for colours in the order red, green, blue; 1 for grey.
        size: height and width of the images of the training; None if each kept its own.
        scaled: True if images are scaled and cropped to `size`, as those of a folder are; False if they must have it.
        dtype: name of their type.
        mean, std: statistics of pixels in [0, 1]; None for none.
        classes, transform: as in `Preparation`.

    Example:
        >>> Pictures(1, (28, 28), scaled=False, mean=0.5, std=0.5).describe()["mean"]
        0.5
    """

    kind = "images"

    def __init__(
        self,
        channels: int,
        size: tuple[int, int] | None,
        *,
        scaled: bool,
        dtype: torch.dtype | str = "float32",
        mean: Numbers | None = None,
        std: Numbers | None = None,
        classes: Sequence[str] = (),
        transform: str = "",
    ) -> None:
        super().__init__(classes, transform)
        self.channels, self.size, self.scaled = channels, size, scaled
        self.dtype, self.mean, self.std = dtype_of(dtype), mean, std

    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON."""
        return {
            "channels": self.channels,
            "order": "RGB" if self.channels == 3 else "grey",
            "layout": "channels, height, width",
            "size": None if self.size is None else list(self.size),
            "scaled": self.scaled,
            "dtype": str(self.dtype).removeprefix("torch."),
            "divisor": 1 if self.dtype == torch.uint8 else 255,
            "mean": _listed(self.mean),
            "std": _listed(self.std),
        }

    @classmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""
        size = held["size"]
        return cls(
            held["channels"],
            None if size is None else (size[0], size[1]),
            scaled=held["scaled"],
            dtype=held["dtype"],
            mean=held["mean"],
            std=held["std"],
            classes=classes,
            transform=transform,
        )

    def read(self, path: Path) -> list[Prepared]:
        """Return the image in a file.

        Raises:
            BadInputs: its size differs from that of the training, or it has colours and the training had none.
            BadData: the file is not an image.
        """
        pixels = pixels_of(path, 3, self.size if self.scaled else None)
        if self.size is not None and not self.scaled and tuple(pixels.shape[1:]) != self.size:
            raise BadInputs(
                f"{path} has {pixels.shape[2]} x {pixels.shape[1]} pixels (width x height)",
                expected=f"expected {self.size[1]} x {self.size[0]}, the size of the images of the training",
                remedy="crop and scale it as the images of the training were",
            )
        if self.channels == 1:
            if not bool((pixels[0] == pixels[1]).all() and (pixels[0] == pixels[2]).all()) and not self.scaled:
                raise BadInputs(
                    f"{path} has colours",
                    expected="expected a grey image: the training had one channel",
                    remedy="convert it to grey as the images of the training were",
                )
            pixels = pixels_of(path, 1, self.size if self.scaled else None)
        made = Pixels(self.channels, self.dtype, self.mean, self.std)(pixels.unsqueeze(0))[0]
        return [Prepared(str(path), (made,))]


def _listed(numbers: Numbers | None) -> float | list[float] | None:
    return (
        float(numbers) if isinstance(numbers, int | float) else None if numbers is None else list(map(float, numbers))
    )
