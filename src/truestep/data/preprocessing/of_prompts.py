"""Preprocessing of a text for a language model of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch

from truestep.data._files import decoded
from truestep.data.preprocessing.preparation import Preparation, Prepared
from truestep.errors import BadData, BadInputs


class Prompts(Preparation):
    """Texts as numbers of characters.

    Args:
        classes: the characters, in the order of their tokens.
        block: tokens in a sample of the training: the longest context.
        encoding: of files.
        transform: as in `Preparation`.
    """

    kind = "tokens"

    def __init__(self, classes: Sequence[str], block: int, encoding: str = "utf-8", transform: str = "") -> None:
        super().__init__(classes, transform)
        self.block, self.encoding = block, encoding
        self._tokens = {character: token for token, character in enumerate(self.classes)}

    def describe(self) -> dict[str, Any]:
        """Return the arguments of the class, in types of JSON."""
        return {"block": self.block, "encoding": self.encoding}

    @classmethod
    def from_description(cls, held: Mapping[str, Any], classes: Sequence[str], transform: str) -> Self:
        """Return the preprocessing that `describe` described."""
        return cls(classes, held["block"], held["encoding"], transform)

    def encode(self, text: str, source: str = "the text") -> torch.Tensor:
        """Return the tokens of a text, int64, shape (length,).

        Raises:
            BadInputs: a character is unknown.

        Example:
            >>> Prompts("abc", block=4).encode("cab")
            tensor([2, 0, 1])
        """
        strange = [character for character in dict.fromkeys(text) if character not in self._tokens]
        if strange:
            raise BadInputs(
                f"{source} has the character {strange[0]!r}",
                expected=f"expected the {len(self.classes)} of the training: {''.join(self.classes).strip()}",
                remedy="replace it, or train with a text that has it",
            )
        return torch.tensor([self._tokens[character] for character in text], dtype=torch.int64)

    def decode(self, tokens: torch.Tensor) -> str:
        """Return the text of tokens, shape (length,)."""
        return "".join(self.classes[token] for token in tokens.tolist())

    def read(self, path: Path) -> list[Prepared]:
        """Return the text in a file, without line ends at its end.

        Raises:
            BadInputs: a character is unknown.
            BadData: the file cannot be read, or is empty.
        """
        text = decoded(path, self.encoding).rstrip("\n")
        if not text:
            raise BadData("the file has no text", path=path, expected="expected some characters", remedy="add them")
        return [Prepared(str(path), (self.encode(text, str(path)),))]
