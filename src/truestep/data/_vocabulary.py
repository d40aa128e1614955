"""Encoding of text as tokens: with a vocabulary of words, or with a tokenizer of another package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from truestep.errors import BadData

PADDING = "<pad>"
UNKNOWN = "<unk>"

Encode = Callable[[str], list[int]]


def vocabulary(counts: Counter[str], min_count: int) -> tuple[str, ...]:
    """Return padding, unknown, and the words that occur at least `min_count` times: by falling count, then by name."""
    special = (PADDING, UNKNOWN)  # preprocessed texts may contain them already
    kept = sorted((-count, word) for word, count in counts.items() if count >= min_count and word not in special)
    return (PADDING, UNKNOWN, *(word for _, word in kept))


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Return the counts of words, separated by white space."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.split())
    return counts


class Words:
    """Encodes a text word by word.

    Args:
        vocab: the words, in the order of their tokens; the first two are padding and unknown.

    >>> Words(("<pad>", "<unk>", "a", "film"))("a bad film")
    [2, 1, 3]
    """

    def __init__(self, vocab: Sequence[str]) -> None:
        if tuple(vocab[:2]) != (PADDING, UNKNOWN) or len(set(vocab)) != len(vocab):
            raise BadData(
                "vocab is not a vocabulary",
                expected=f"expected words that differ, {PADDING!r} and {UNKNOWN!r} first, got {list(vocab[:3])}",
                remedy="pass `vocab` of the training set",
            )
        self._tokens = {word: token for token, word in enumerate(vocab)}

    def __call__(self, text: str) -> list[int]:
        return [self.token(word) for word in text.split()]

    def token(self, word: str) -> int:
        """Return the token of a word: 1 if it is unknown."""
        return self._tokens.get(word, 1)


class Tokenizer:
    """Encodes a text with a tokenizer of another package.

    Args:
        tokenizer: a callable, or an object with `encode`, that returns tokens or an object with `ids`, as those of
            `tokenizers`, `transformers` and `tiktoken` do.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._encode = getattr(tokenizer, "encode", tokenizer)
        if not callable(self._encode):
            raise BadData(
                f"tokenizer must be a callable or have `encode`, got a {type(tokenizer).__name__}",
                remedy="pass a function from a text to a list of tokens",
            )

    def __call__(self, text: str) -> list[int]:
        made = self._encode(text)
        return [int(token) for token in getattr(made, "ids", made)]
