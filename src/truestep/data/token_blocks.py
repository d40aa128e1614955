"""One long sequence of tokens, read in blocks for next-token prediction."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch

from truestep.data._files import contents, decoded
from truestep.data._samples import Samples, Transform
from truestep.errors import BadData

Unit = Literal["uint16", "uint32", "bytes", "characters"]

_VIEWS = {"uint16": torch.int16, "uint32": torch.int32, "bytes": torch.uint8}
"""What is mapped: signed types are indexed on every device, wide unsigned ones are not."""

_MASKS = {torch.int16: 0xFFFF, torch.int32: 0xFFFFFFFF, torch.uint8: 0xFF}
"""The bits that are the token, once its sign was extended."""

_CHUNK = 1 << 24


class TokenBlocks(Samples):
    """Blocks of one sequence: sample i is x = sequence[i * stride : i * stride + block], y the same one token later.

    Args:
        sequence: uint8, int16 or int32 of shape (tokens,), whose bits are read as unsigned numbers.
        block: tokens in x, and in y.
        stride: tokens between the starts of two samples.
        transform: called with x of a whole batch; returns what replaces it.
        classes: the characters at the places that tokens count from 0; empty where tokens are numbers.
    """

    def __init__(
        self,
        sequence: torch.Tensor,
        block: int,
        stride: int,
        transform: Transform | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        super().__init__((len(sequence) - block - 1) // stride + 1, transform, classes)
        self.block = block
        self.stride = stride
        self._sequence = sequence

    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return x and y of the blocks at `rows`, int64, each of shape (batch, block)."""
        if rows.device.type == "cpu" and len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < self._count:
            raise IndexError(f"a block of {int(rows.min())} ... {int(rows.max())} is none of {self._count}")
        places = (rows * self.stride).unsqueeze(1) + torch.arange(self.block + 1, device=rows.device)
        taken = self._sequence[places].to(torch.int64) & _MASKS[self._sequence.dtype]
        return taken[:, :-1].contiguous(), taken[:, 1:].contiguous()

    def place(self, rows: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
        """Put the sequence on a device."""
        self._sequence = self._sequence.to(device)
        return None if rows is None else rows.to(device)

    @property
    def device(self) -> torch.device:
        """Where the sequence is."""
        return self._sequence.device

    @property
    def held_bytes(self) -> int:
        """What the sequence takes."""
        return self._sequence.nbytes

    def split(self, part: float, *, seed: int | None = None) -> tuple[Self, Self]:
        """Return the blocks of the beginning and those of the rest, without a token in common.

        Args:
            part: of the first set; a float in (0, 1) is a part of the tokens, an int a number of blocks.
            seed: None. Blocks drawn at random would have their neighbours in the other set.

        Raises:
            BadData: one of the sets is empty, or a seed.
        """
        if seed is not None:
            raise BadData(
                "blocks of one sequence are split by their place",
                expected=f"expected seed=None, got {seed}",
                remedy="leave out seed",
            )
        held = len(self._sequence)
        end = round(part * held) if isinstance(part, float) else (part - 1) * self.stride + self.block + 1
        if not self.block < end < held - self.block:
            raise BadData(
                f"part {part!r} leaves one of the two sets without a block of {self.block} tokens",
                expected=f"the sequence has {held} tokens",
                remedy="pass 0.9 for nine tenths, or a smaller block",
            )
        return self._over(self._sequence[:end]), self._over(self._sequence[end:])

    def _over(self, sequence: torch.Tensor) -> Self:
        made = copy.copy(self)
        made._sequence = sequence
        made._count = (len(sequence) - self.block - 1) // self.stride + 1
        return made

    def encode(self, text: str) -> torch.Tensor:
        """Return the tokens of a text of this set's characters, int64 of shape (length,).

        Raises:
            BadData: a character that is none of them, or tokens that are no characters.
        """
        self._characters()
        return _numbers(text, self.classes, "the text").to(torch.int64)

    def decode(self, tokens: torch.Tensor) -> str:
        """Return the text of tokens, shape (length,).

        Raises:
            BadData: tokens that are no characters.
        """
        characters = self._characters()
        return "".join(characters[token] for token in tokens.tolist())

    def _characters(self) -> tuple[str, ...]:
        if not self.classes:
            raise BadData(
                "the tokens are numbers, not characters",
                expected='expected a file read with unit="characters"',
                remedy="decode them with the tokenizer that made them",
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

    Files of numbers and of bytes are mapped: they take no memory, and a batch reads its own part of the disk.

    Args:
        path: numbers as `numpy.ndarray.tofile` writes them (native byte order, no header), or a text.
        block: tokens in x, and in y; at least 1.
        stride: tokens between the starts of two samples; `block` where None, so that each token is in x once. 1 makes
            every place a start.
        unit: what a token is: "uint16" or "uint32" numbers, "bytes", or "characters" of a text. A file named .txt has
            characters where None.
        vocab_size: if given, the numbers are read once and must be below it.
        classes: the characters, in the order of their tokens, such as `classes` of the training set; those that occur,
            sorted, where None.
        encoding: of a text.
        transform: called with x of a whole batch; returns what replaces it.

    Returns:
        A set of x and y, int64, each of shape (block,); y is x one token later.

    Raises:
        BadData: no unit, bytes that are no whole number of tokens, fewer tokens than a block, a token at or above
            `vocab_size`, or a character that is none of `classes`.

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
            raise BadData(f"{what}={number} is no number of tokens", path=path, remedy=f"pass {what}=128")
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
    return TokenBlocks(sequence, block, stride, transform, characters)


def _unit(path: Path, unit: str | None) -> str:
    if unit is None and path.suffixes[:1] == [".txt"]:
        return "characters"
    if unit not in (*_VIEWS, "characters"):
        raise BadData(
            "it is not said what a token of the file is" if unit is None else f"{unit!r} is no unit of tokens",
            path=path,
            expected='expected unit="uint16", "uint32", "bytes" or "characters"',
            remedy="pass the type that the tokenizer wrote",
        )
    return unit


def _mapped(path: Path, unit: str) -> torch.Tensor:
    """Return a file's numbers, mapped; a compressed file's in memory."""
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
            "the file has numpy's header, which would be read as tokens",
            path=path,
            remedy="write the tokens with `array.tofile(path)`",
        )
    if size % view.itemsize:
        raise BadData(
            f"the file has {size} bytes",
            path=path,
            expected=f"expected a whole number of tokens of {view.itemsize} bytes",
            remedy="pass the unit that the file was written in, or write it again",
        )
    if size == 0:
        return torch.empty(0, dtype=view)
    if path.suffix == ".gz":
        return torch.frombuffer(held, dtype=view)
    return torch.from_file(str(path), shared=False, size=size // view.itemsize, dtype=view)


def _numbers(text: str, characters: Sequence[str], source: Any) -> torch.Tensor:
    """Return the place of each character of a text: uint8 where they fit, else int32."""
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
            f"character {text[at]!r} is none of the {len(characters)} known",
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
                f"token {int(sequence[index]) & mask} is not below vocab_size={vocab_size}",
                path=path,
                where=f"index {index}",
                remedy="pass the unit that the file was written in, or the tokenizer's vocab_size",
            )
