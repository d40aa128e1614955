"""One long sequence of tokens, read in blocks for next-token prediction."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch

from truestep.data._files import contents, decoded
from truestep.data._samples import Samples, Transform
from truestep.data.preprocessing.of_prompts import Prompts
from truestep.errors import BadData

Unit = Literal["uint16", "uint32", "bytes", "characters"]

_VIEWS = {"uint16": torch.int16, "uint32": torch.int32, "bytes": torch.uint8}
"""Dtypes of the memory map: signed types can be indexed on every device, wide unsigned ones cannot."""

_MASKS = {torch.int16: 0xFFFF, torch.int32: 0xFFFFFFFF, torch.uint8: 0xFF}
"""Bits of the token after sign extension to int64."""

_CHUNK = 1 << 24


class TokenBlocks(Samples):
    """Blocks of one sequence: sample i is x = sequence[i * stride : i * stride + block], and y is one token later.

    Args:
        sequence: uint8, int16 or int32 of shape (tokens,), with bits that are read as unsigned numbers.
        block: tokens in x, and in y.
        stride: tokens between the starts of two samples.
        transform: called with x of a whole batch; returns its replacement.
        classes: the characters of the tokens 0, 1, ...; empty if tokens are not characters.
        encoding: of the text.
    """

    def __init__(
        self,
        sequence: torch.Tensor,
        block: int,
        stride: int,
        transform: Transform | None = None,
        classes: Sequence[str] = (),
        encoding: str = "utf-8",
    ) -> None:
        super().__init__((len(sequence) - block - 1) // stride + 1, transform, classes)
        self.block = block
        self.stride = stride
        self._sequence = sequence
        self._encoding = encoding

    def prepare(self) -> Prompts | None:
        """Return the preprocessing before the transform; None if tokens are not characters."""
        return Prompts(self.classes, self.block, self._encoding) if self.classes else None

    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return x and y of the blocks at `rows`, int64, each of shape (batch, block)."""
        if rows.device.type == "cpu" and len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < self._count:
            raise IndexError(f"rows must be below {self._count}, got {int(rows.min())} ... {int(rows.max())}")
        places = (rows * self.stride).unsqueeze(1) + torch.arange(self.block + 1, device=rows.device)
        taken = self._sequence[places].to(torch.int64) & _MASKS[self._sequence.dtype]
        return taken[:, :-1].contiguous(), taken[:, 1:].contiguous()

    def place(self, rows: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
        """Move the sequence to a device."""
        self._sequence = self._sequence.to(device)
        return None if rows is None else rows.to(device)

    @property
    def device(self) -> torch.device:
        """The device of the sequence."""
        return self._sequence.device

    @property
    def held_bytes(self) -> int:
        """Bytes of the sequence."""
        return self._sequence.nbytes

    def split(self, part: float, *, seed: int | None = None) -> tuple[Self, Self]:
        """Return the blocks of the beginning and those of the rest, without a common token.

        Args:
            part: size of the first set: a float in (0, 1) as a fraction of the tokens, an int as a number of blocks.
            seed: must be None: blocks drawn at random would overlap with neighbours in the other set.

        Raises:
            BadData: one of the sets would be empty, or `seed` is not None.
        """
        if seed is not None:
            raise BadData(
                f"seed must be None, got {seed}: blocks of one sequence are split by position",
                remedy="leave out seed",
            )
        held = len(self._sequence)
        end = round(part * held) if isinstance(part, float) else (part - 1) * self.stride + self.block + 1
        if not self.block < end < held - self.block:
            raise BadData(
                f"part {part!r} leaves one of the two sets without a block of {self.block} tokens",
                expected=f"length of the sequence: {held} tokens",
                remedy="pass 0.9 for 90 %, or a smaller block",
            )
        return self._over(self._sequence[:end]), self._over(self._sequence[end:])

    def _over(self, sequence: torch.Tensor) -> Self:
        made = copy.copy(self)
        made._sequence = sequence
        made._count = (len(sequence) - self.block - 1) // self.stride + 1
        return made

    def encode(self, text: str) -> torch.Tensor:
        """Return the tokens of a text in the characters of this set, int64 of shape (length,).

        Raises:
            BadData: an unknown character, or tokens of this set are not characters.
        """
        self._characters()
        return _numbers(text, self.classes, "the text").to(torch.int64)

    def decode(self, tokens: torch.Tensor) -> str:
        """Return the text of tokens, shape (length,).

        Raises:
            BadData: tokens of this set are not characters.
        """
        characters = self._characters()
        return "".join(characters[token] for token in tokens.tolist())

    def _characters(self) -> tuple[str, ...]:
        if not self.classes:
            raise BadData(
                "the tokens are numbers, not characters",
                expected='expected a file read with unit="characters"',
                remedy="decode them with their tokenizer",
            )
        return self.classes


def tokens(
    path: str | Path,
    *,
    block: int,
    stride: int | None = None,
    unit: Unit | None = None,
    vocab_size: int | None = None,
    classes: Sequence[str] | None = None,
    encoding: str = "utf-8",
    transform: Transform | None = None,
) -> TokenBlocks:
    """Read a file of tokens, or a text, in blocks for next-token prediction.

    Files of numbers and of bytes are memory-mapped: they take no memory, and a batch reads only its part of the file.

    Args:
        path: numbers as written by `numpy.ndarray.tofile` (native byte order, no header), or a text.
        block: tokens in x, and in y; at least 1.
        stride: tokens between the starts of two samples; None takes `block`, so that each token is in x once. 1 makes
            every position a start.
        unit: the kind of tokens: "uint16" or "uint32" numbers, "bytes", or "characters" of a text. None takes
            "characters" for a file named .txt.
        vocab_size: if given, all numbers are read once and must be below it.
        classes: the characters, in the order of their tokens, such as `classes` of the training set; None takes those
            that occur, sorted.
        encoding: encoding of a text.
        transform: called with x of a whole batch; returns its replacement.

    Returns:
        A set of x and y, int64, each of shape (block,); y is x one token later.

    Raises:
        BadData: no unit, a size that is not a multiple of the token's, fewer tokens than a block, a token at or above
            `vocab_size`, or a character that is not among `classes`.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from truestep import data
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "abc.txt").write_text("abcabca")
    ...     made = data.tokens(Path(folder) / "abc.txt", block=3)
    >>> made[1]
    (tensor([0, 1, 2]), tensor([1, 2, 0]))
    >>> made.decode(made[1][1])
    'bca'
    """
    path = Path(path)
    stride = block if stride is None else stride
    for what, number in (("block", block), ("stride", stride)):
        if number < 1:
            raise BadData(f"{what} must be at least 1, got {number}", path=path, remedy=f"pass {what}=128")
    kind = _unit(path, unit)
    characters: tuple[str, ...] = ()
    if kind == "characters":
        text = decoded(path, encoding)
        characters = tuple(sorted(set(text))) if classes is None else tuple(classes)
        sequence = _numbers(text, characters, path)
    else:
        sequence = _mapped(path, kind)
    if len(sequence) <= block:
        raise BadData(
            f"the file has {len(sequence)} tokens",
            path=path,
            expected=f"expected at least {block + 1} for a block of {block}",
            remedy="pass a smaller block",
        )
    if vocab_size is not None:
        _check_below(sequence, vocab_size, path)
    return TokenBlocks(sequence, block, stride, transform, characters, encoding)


def _unit(path: Path, unit: str | None) -> str:
    if unit is None and path.suffixes[:1] == [".txt"]:
        return "characters"
    if unit not in (*_VIEWS, "characters"):
        raise BadData(
            f'unit must be "uint16", "uint32", "bytes" or "characters", got {unit!r}',
            path=path,
            remedy="pass the type that the tokenizer wrote",
        )
    return unit


def _mapped(path: Path, unit: str) -> torch.Tensor:
    """Return a file's numbers, memory-mapped; those of a compressed file are in memory."""
    view = _VIEWS[unit]
    if path.suffix == ".gz" or not path.is_file():
        held = bytearray(contents(path))
        size, head = len(held), bytes(held[:6])
    else:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(6)
    if head == b"\x93NUMPY":
        raise BadData(
            "the file has a header of numpy, which would be read as tokens",
            path=path,
            remedy="write the tokens with `array.tofile(path)`",
        )
    if size % view.itemsize:
        raise BadData(
            f"the file has {size} bytes",
            path=path,
            expected=f"expected a multiple of {view.itemsize}, the bytes of a token",
            remedy="pass the unit of the file, or write it again",
        )
    if size == 0:
        return torch.empty(0, dtype=view)
    if path.suffix == ".gz":
        return torch.frombuffer(held, dtype=view)
    return torch.from_file(str(path), shared=False, size=size // view.itemsize, dtype=view)


def _numbers(text: str, characters: Sequence[str], source: Any) -> torch.Tensor:
    """Return the index of each character of a text: uint8 if there are at most 256 characters, else int32."""
    import numpy

    points = numpy.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    known = numpy.array([ord(character) for character in characters], dtype="<u4")
    order = known.argsort()
    found = numpy.searchsorted(known[order], points).clip(max=max(0, len(known) - 1))
    strange = known[order][found] != points if len(known) else numpy.ones(len(points), dtype=bool)
    if strange.any():
        at = int(strange.argmax())
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise BadData(
            f"character {text[at]!r} is not among the {len(characters)} known",
            path=source,
            where=f"line {line}, column {column}",
            remedy="pass classes= with all characters of both texts",
        )
    return torch.from_numpy(order[found].astype("u1" if len(known) <= 256 else "i4"))


def _check_below(sequence: torch.Tensor, vocab_size: int, path: Path) -> None:
    mask = _MASKS[sequence.dtype]
    for start in range(0, len(sequence), _CHUNK):
        above = (sequence[start : start + _CHUNK].to(torch.int64) & mask) >= vocab_size
        if bool(above.any()):
            index = start + int(above.to(torch.uint8).argmax())
            raise BadData(
                f"tokens must be below vocab_size={vocab_size}, got {int(sequence[index]) & mask}",
                path=path,
                where=f"index {index}",
                remedy="pass the unit of the file, or the tokenizer's vocab_size",
            )
