"""Data sets that are read from files once, and then fast.

    train = truestep.data.idx("data/train-images", "data/train-labels")
    x, y = train[0]

Each set in memory or in a memory map is read a whole batch at a time (`Batched`), without workers. It is also a
map-style data set for any `DataLoader`. A mistake in a file raises a `BadData` error with the file and the line.

table, tables/                 `csv`: a CSV file as numbers
image_folder, pictures/        `images`: a folder of images
idx_files                      `idx`: files of MNIST and its relatives
text_set, _lines, _vocabulary  `text`: lines of text with classes
token_blocks                   `tokens`: blocks of a long text
tensor_set                     `tensors`: tensors in memory
_samples, _batched, _files     base class of the sets; whole batches; reading of files
preprocessing/                 the preprocessing of a set, saved with a run and applied to new files
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from truestep._lazy import attribute
from truestep.data._batched import Batched

if TYPE_CHECKING:
    from truestep.data.idx_files import idx
    from truestep.data.image_folder import images
    from truestep.data.table import csv
    from truestep.data.tensor_set import tensors
    from truestep.data.text_set import text
    from truestep.data.token_blocks import tokens

__all__ = ["Batched", "csv", "idx", "images", "tensors", "text", "tokens"]

_HOMES = {
    "csv": "truestep.data.table",
    "idx": "truestep.data.idx_files",
    "images": "truestep.data.image_folder",
    "tensors": "truestep.data.tensor_set",
    "text": "truestep.data.text_set",
    "tokens": "truestep.data.token_blocks",
}


def __getattr__(name: str) -> object:
    return attribute(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
