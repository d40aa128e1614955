"""Labelled lines of text, as padded batches of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from truestep.data._lines import LabelledLine, Side, labelled_lines, labels_of
from truestep.data._samples import Samples, Transform
from truestep.data._vocabulary import Encode, Tokenizer, Words, count_words, vocabulary
from truestep.data.preprocessing.of_lines import Lines
from truestep.errors import BadData


class TextSet(Samples):
    """Texts of different lengths: tokens, padded to the longest text of a batch, their lengths, labels.

    Args:
        flat: the tokens of all texts, int32, shape (tokens,).
        lengths: lengths of the texts, int64, shape (texts,).
        labels: int64, shape (texts,).
        classes: names of the classes.
        encode: returns the tokens of a text.
        vocab: the words in the order of their tokens; empty with a tokenizer.
        min_count: least count of a word in a training set to be in its vocabulary; None keeps the vocabulary in
            `split`.
        pad: the padding token.
        transform: called with the tokens of a whole batch; returns their replacement.
        max_length: most tokens kept of a text; None keeps all.
        encoding: of the files.
    """

    def __init__(
        self,
        flat: torch.Tensor,
        lengths: torch.Tensor,
        labels: torch.Tensor,
        *,
        classes: Sequence[str],
        encode: Encode,
        vocab: Sequence[str] = (),
        min_count: int | None = None,
        pad: int = 0,
        transform: Transform | None = None,
        max_length: int | None = None,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(len(lengths), transform, classes)
        self.vocab = tuple(vocab)
        self.pad = pad
        self._flat = flat
        self._lengths = lengths
        self._starts = lengths.cumsum(0) - lengths
        self._labels = labels
        self._encode = encode
        self._min_count = min_count
        self._max_length, self._encoding = max_length, encoding

    def prepare(self) -> Lines | None:
        """Return the preprocessing before the transform; None with a tokenizer of another package."""
        if not self.vocab:
            return None
        return Lines(self.vocab, max_length=self._max_length, encoding=self._encoding, classes=self.classes)

    def fields(self, rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return tokens, int64 of shape (batch, longest), lengths and labels, int64 of shape (batch,)."""
        lengths = self._lengths.index_select(0, rows)
        longest = int(lengths.max()) if len(rows) else 0
        offsets = torch.arange(longest, device=rows.device)
        places = self._starts.index_select(0, rows).unsqueeze(1) + offsets
        taken = self._flat[places.clamp_(max=len(self._flat) - 1)].to(torch.int64)
        padded = taken.masked_fill_(offsets >= lengths.unsqueeze(1), self.pad)
        return padded, lengths, self._labels.index_select(0, rows)

    def place(self, rows: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
        """Move the texts to a device."""
        self._flat, self._lengths = self._flat.to(device), self._lengths.to(device)
        self._starts, self._labels = self._starts.to(device), self._labels.to(device)
        return None if rows is None else rows.to(device)

    @property
    def device(self) -> torch.device:
        """The device of the texts."""
        return self._flat.device

    @property
    def held_bytes(self) -> int:
        """Bytes of the texts."""
        return self._flat.nbytes + self._lengths.nbytes + self._starts.nbytes + self._labels.nbytes

    def split(self, part: float, *, seed: int | None) -> tuple[Self, Self]:
        """Return two sets without a common sample.

        A vocabulary made from this set is made again from the first part alone: words that occur only in the second
        part are unknown there, as new words are in use.

        Args:
            part: size of the first set: a float in (0, 1) as a fraction of the samples, an int as their number.
            seed: draws the first set at random; None takes the first samples.

        Raises:
            BadData: one of the sets is empty.
        """
        first, second = super().split(part, seed=seed)
        if self._min_count is not None and first._rows is not None:
            learnt = torch.zeros(len(self._lengths), dtype=torch.bool, device=self.device)
            learnt[first._rows] = True
            counts = torch.bincount(self._flat[learnt.repeat_interleave(self._lengths)], minlength=len(self.vocab))
            named = Counter(dict(zip(self.vocab[2:], counts[2:].tolist(), strict=True)))
            vocab = vocabulary(named, max(1, self._min_count))
            renumbered = torch.tensor(list(map(Words(vocab).token, self.vocab)), dtype=torch.int32, device=self.device)
            flat = renumbered[self._flat]
            for made in (first, second):
                made.vocab, made._flat, made._encode = vocab, flat, Words(vocab)
        return first, second

    def describe(self) -> str:
        """Return one line with the number of texts, their lengths, and their size in MB."""
        lengths = self._lengths if self._rows is None else self._lengths[self._rows]
        words = f"; {len(self.vocab):,} words" if self.vocab else ""
        return (
            f"{len(self):,} texts of {int(lengths.min())} to {int(lengths.max())} tokens; {len(self.classes)} classes"
            f"{words}; {self.nbytes / 1e6:.1f} MB on {self.device}"
        )

    def encode(self, text: str) -> torch.Tensor:
        """Return the tokens of a text, int64, shape (length,), encoded like the texts of this set."""
        return torch.tensor(self._encode(text), dtype=torch.int64)


def text(
    source: str | Path | Mapping[str, str | Path],
    *,
    tokenizer: Any = None,
    vocab: Sequence[str] | None = None,
    min_count: int = 1,
    max_length: int | None = None,
    pad: int = 0,
    classes: Sequence[str] | None = None,
    label: Side = "last",
    header: bool = False,
    encoding: str = "utf-8",
    transform: Transform | None = None,
) -> TextSet:
    """Read labelled lines, as tokens in padded batches.

    Args:
        source: one file per class, as {"class": path} or as a folder, with the classes as names of the files (or as
            their suffixes, if only these differ); or one file of lines with a text, a tab and a label.
        tokenizer: a callable from a text to tokens, or an object with `encode` (tokenizers, transformers, tiktoken).
            Without one, tokens are words between white space; 0 is padding, 1 is an unknown word.
        vocab: `vocab` of the training set, so that words get the same tokens; None takes the words of this source.
        min_count: words that occur less often are unknown; at least 1.
        max_length: most tokens kept of a text; None keeps all.
        pad: the padding token, with a tokenizer.
        classes: the classes, in the order of their labels; None takes the order of a dict, or else sorts them.
        label: the side of the tab with the label, "first" or "last".
        header: True to skip the first line, which has the names of the columns.
        encoding: encoding of the files; older ones are often "latin-1".
        transform: called with the tokens of a whole batch; returns their replacement.

    Returns:
        A set of tokens, lengths and labels. A batch has int64 tokens of shape (batch, longest), lengths of shape
        (batch,), which give the mask `torch.arange(longest) < lengths[:, None]`, and labels of shape (batch,).

    Raises:
        BadData: a missing or undecodable file, a line without text, label or tab, a label without a class.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import torch
    >>> from truestep import data
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "r.tsv").write_text("a fine film\\tgood\\nbad\\tpoor\\n")
    ...     made = data.text(Path(folder, "r.tsv"))
    >>> made.vocab, made.classes
    (('<pad>', '<unk>', 'a', 'bad', 'film', 'fine'), ('good', 'poor'))
    >>> made.batch(torch.tensor([1, 0]))
    (tensor([[3, 0, 0],
            [2, 5, 4]]), tensor([1, 3]), tensor([1, 0]))
    """
    if tokenizer is not None and (vocab is not None or min_count != 1):
        raise BadData("vocab and min_count need words, not a tokenizer", remedy="leave them out, or the tokenizer")
    _check_limits(min_count, max_length)
    lines, found = labelled_lines(source, encoding, label, header=header)
    names = found if classes is None else tuple(classes)
    made = _tokenized(lines, tokenizer, vocab, min_count, max_length)
    return TextSet(
        made.flat,
        made.lengths,
        torch.tensor(labels_of(lines, names), dtype=torch.int64),
        classes=names,
        encode=made.encode,
        vocab=made.vocab,
        min_count=min_count if tokenizer is None and vocab is None else None,
        pad=pad if tokenizer is not None else 0,
        transform=transform,
        max_length=max_length,
        encoding=encoding,
    )


def _check_limits(min_count: int, max_length: int | None) -> None:
    for what, number in (("min_count", min_count), ("max_length", 1 if max_length is None else max_length)):
        if number < 1:
            raise BadData(f"{what} must be at least 1, got {number}", remedy=f"leave out {what}, or pass 1 or more")


class _Tokenized(NamedTuple):
    flat: torch.Tensor
    lengths: torch.Tensor
    encode: Encode
    vocab: tuple[str, ...]


def _tokenized(
    lines: Sequence[LabelledLine], tokenizer: Any, vocab: Sequence[str] | None, min_count: int, max_length: int | None
) -> _Tokenized:
    words: tuple[str, ...] = ()
    encode: Encode
    if tokenizer is not None:
        encode = Tokenizer(tokenizer)
    else:
        words = vocabulary(count_words(line.text for line in lines), min_count) if vocab is None else tuple(vocab)
        encode = Words(words)
    tokens = [_tokens(line, encode)[:max_length] for line in lines]
    flat = torch.tensor(list(chain.from_iterable(tokens)), dtype=torch.int32)
    return _Tokenized(flat, torch.tensor(list(map(len, tokens)), dtype=torch.int64), encode, words)


def _tokens(line: LabelledLine, encode: Encode) -> list[int]:
    tokens = encode(line.text)
    if not tokens:
        raise BadData(
            "the line has no tokens",
            path=line.path,
            where=f"line {line.number}",
            expected=f"expected at least one token, got [] from the tokenizer for {line.text[:40]!r}",
            remedy="delete the line",
        )
    return tokens
