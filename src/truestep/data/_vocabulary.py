"""From a text to tokens: words of a vocabulary, or a tokenizer that was made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from truestep.errors import BadData

PADDING = "<pad>"
UNKNOWN = "<unk>"

Encode = Callable[[str], list[int]]


def vocabulary(counts: Counter[str], min_count: int) -> tuple[str, ...]:
    """Return padding, unknown, and the words that occur often enough: the most frequent ones first, then by name."""
    special = (PADDING, UNKNOWN)  # texts that were prepared elsewhere have them already
    kept = sorted((-count, word) for word, count in counts.items() if count >= min_count and word not in special)
    return (PADDING, UNKNOWN, *(word for _, word in kept))


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count what white space separates."""
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
                "vocab is no vocabulary",
                expected=f"expected words that differ, {PADDING!r} and {UNKNOWN!r} first, got {list(vocab[:3])}",
                remedy="pass `vocab` of the training set",
            )
        self._tokens = {word: token for token, word in enumerate(vocab)}

    def __call__(self, text: str) -> list[int]:
        return [self.token(word) for word in text.split()]

    def token(self, word: str) -> int:
        """Return the token of a word: 1 where it is unknown."""
        return self._tokens.get(word, 1)


class Tokenizer:
    """Encodes a text with a tokenizer that was made elsewhere.

    Args:
        tokenizer: a callable, or an object with `encode`, which returns tokens or an object with `ids`, as those of
            `tokenizers`, `transformers` and `tiktoken` do.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._encode = getattr(tokenizer, "encode", tokenizer)
        if not callable(self._encode):
            raise BadData(
                f"a {type(tokenizer).__name__} is no tokenizer",
                expected="expected a callable, or an object with `encode`",
                remedy="pass a function from a text to a list of tokens",
            )

    def __call__(self, text: str) -> list[int]:
        made = self._encode(text)
        return [int(token) for token in getattr(made, "ids", made)]
