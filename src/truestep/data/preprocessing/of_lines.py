"""Preprocessing of lines of text: the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from truestep.data._files import decoded
from truestep.data._vocabulary import Words
from truestep.data.preprocessing.preparation import Preparation, Prepared
from truestep.errors import BadData, BadInputs


class Lines(Preparation):
    """Texts as tokens of a vocabulary of words, and their lengths.

    Args:
        vocab: the words, in the order of their tokens.
        max_length: most tokens kept of a text; None keeps all.
        encoding: of files.
        classes, transform: as in `Preparation`.
    """

    kind = "text"

    def __init__(
        self,
        vocab: Sequence[str],
        *,
        max_length: int | None = None,
        encoding: str = "utf-8",
        classes: Sequence[str] = (),
        transform: str = "",
    ) -> None:
        super().__init__(classes, transform)
        self.vocab = tuple(vocab)
        self.max_length, self.encoding = max_length, encoding
        self._words = Words(self.vocab)

    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON."""
        return {"vocab": list(self.vocab), "max_length": self.max_length, "encoding": self.encoding, "pad": 0}

    @classmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""
        return cls(
            held["vocab"],
            max_length=held["max_length"],
            encoding=held["encoding"],
            classes=classes,
            transform=transform,
        )

    def encode(self, text: str) -> torch.Tensor:
        """Return the tokens of a text, int64, shape (length,).

        Example:
            >>> Lines(("<pad>", "<unk>", "a", "film")).encode("a bad film")
            tensor([2, 1, 3])
        """
        return torch.tensor(self._words(text)[: self.max_length], dtype=torch.int64)

    def read(self, path: Path) -> list[Prepared]:
        """Return the texts in a file, one on each line; empty lines are skipped.

        Raises:
            BadInputs: all words of the file are unknown, so that it is of another language or kind.
            BadData: the file cannot be read, or is empty.
        """
        lines = [
            (number, line) for number, line in enumerate(_text(path, self.encoding).splitlines(), 1) if line.split()
        ]
        if not lines:
            raise BadData("the file has no text", path=path, expected="expected a text on each line", remedy="add one")
        found = [(number, self.encode(line)) for number, line in lines]
        if all(bool((tokens == 1).all()) for _, tokens in found):
            raise BadInputs(
                f"no word of {path} is in the vocabulary of the training",
                expected=f"expected some of its {len(self.vocab) - 2:,} words, such as {', '.join(self.vocab[2:7])}",
                remedy="pass a text of the same language, split into words in the same way",
            )
        place = "" if len(found) == 1 else ", line {}"
        return [
            Prepared(f"{path}{place.format(number)}", (tokens, torch.tensor(len(tokens)))) for number, tokens in found
        ]

    def batch(self, prepared: Sequence[Prepared]) -> tuple[torch.Tensor, ...]:
        """Return tokens, padded with 0 to the longest, and lengths."""
        tokens = torch.nn.utils.rnn.pad_sequence([one.fields[0] for one in prepared], batch_first=True)
        return tokens, torch.stack([one.fields[1] for one in prepared])


def _text(path: Path, encoding: str) -> str:
    return decoded(path, encoding)
