"""Models for the measurements of exports, trained for a few seconds on real data, with batches to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from truestep import data


@dataclass
class Trained:
    """A model with batches of its evaluation.

    Attributes:
        model: trained for some steps.
        batches: of the held-out data.
        correct: returns the share of right answers for the outputs of a batch.
    """

    model: nn.Module
    batches: list[Any]
    correct: Callable[[Any, Any], float]


class Bag(nn.Module):
    """The classifier of reviews of `truestep new text`."""

    def __init__(self, words: int, width: int = 32, pairs: int = 1 << 15) -> None:
        super().__init__()
        self.pairs = pairs
        self.word, self.pair = (nn.Embedding(count, width, padding_idx=0) for count in (words, pairs))
        self.dropout, self.head = nn.Dropout(0.5), nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, 2) for tokens of shape (batch, longest)."""
        left, right = tokens[:, :-1], tokens[:, 1:]
        hashed = (1 + (left * 7919 + right) % (self.pairs - 1)) * (right > 0)
        said = self.word(tokens).sum(dim=1) + self.pair(hashed).sum(dim=1)
        return self.head(self.dropout(said / lengths.unsqueeze(1).sqrt()))


class Writer(nn.Module):
    """The character model of `truestep new tokens`."""

    def __init__(self, characters: int, block: int = 64, width: int = 128, layers: int = 2) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(characters, width), nn.Embedding(block, width)
        options: dict[str, Any] = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, **options) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, block, characters) for tokens of shape (batch, block)."""
        block = tokens.shape[1]
        later = nn.Transformer.generate_square_subsequent_mask(block, device=tokens.device)
        x = self.character(tokens) + self.place.weight[:block]
        for layer in self.layers:
            x = layer(x, src_mask=later, is_causal=True)
        return self.head(self.norm(x))


def cnn(folder: Path) -> Trained:
    """The convolutional network of `truestep new images`, on FashionMNIST."""
    place = folder / "fashion-mnist"
    read: dict[str, Any] = {"mean": 0.2860, "std": 0.3530}
    train = data.idx(place / "train-images", place / "train-labels", **read)
    test = data.idx(place / "t10k-images", place / "t10k-labels", **read)
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, 10)),
    )
    _train(model, train, 60, lambda x, y: functional.cross_entropy(model(x), y))
    return Trained(model, list(_batches(test, 500, 4)), _accuracy)


def mlp(folder: Path) -> Trained:
    """Linear layers of 512, on FashionMNIST."""
    place = folder / "fashion-mnist"
    read: dict[str, Any] = {"mean": 0.2860, "std": 0.3530}
    train = data.idx(place / "train-images", place / "train-labels", **read)
    test = data.idx(place / "t10k-images", place / "t10k-labels", **read)
    hidden = [layer for _ in range(3) for layer in (nn.Linear(512, 512), nn.ReLU())]
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), *hidden, nn.Linear(512, 10))
    _train(model, train, 300, lambda x, y: functional.cross_entropy(model(x), y))
    return Trained(model, list(_batches(test, 64, 32)), _accuracy)


def reviews(folder: Path) -> Trained:
    """The classifier of reviews of different lengths."""
    place = folder / "rt-polarity"
    files = {"bad": place / "rt-polarity.neg", "good": place / "rt-polarity.pos"}
    train, test = data.text(files, encoding="latin-1", min_count=2).split(0.9, seed=0)
    model = Bag(len(train.vocab))
    _train(model, train, 150, lambda x, n, y: functional.cross_entropy(model(x, n), y))
    return Trained(model, list(_batches(test, 256, 4)), _accuracy)


def characters(folder: Path) -> Trained:
    """The transformer of characters, on plays of Shakespeare."""
    train, test = data.tokens(folder / "tinyshakespeare/input.txt", block=64).split(0.9)
    model = Writer(len(train.classes))
    _train(model, train, 40, lambda x, y: functional.cross_entropy(model(x).flatten(0, 1), y.flatten()))
    return Trained(model, list(_batches(test, 32, 4)), _accuracy)


def transformers(folder: Path) -> Trained:
    """A classifier of transformers, made from a configuration, on the reviews."""
    from transformers import BertConfig, BertForSequenceClassification

    reviewed = data.text(
        {name: folder / f"rt-polarity/rt-polarity.{name[:3]}" for name in ("neg", "pos")},
        encoding="latin-1",
        min_count=2,
    )
    train, test = reviewed.split(0.9, seed=0)
    config = BertConfig(
        vocab_size=len(train.vocab), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128
    )
    model = BertForSequenceClassification(config)

    def inputs(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input_ids": x, "attention_mask": (x > 0).long()}

    _train(model, train, 20, lambda x, n, y: functional.cross_entropy(model(**inputs(x)).logits, y))
    batches = [inputs(x) | {"labels": y} for x, _, y in _batches(test, 64, 4)]
    return Trained(model, batches, lambda out, batch: _accuracy(out, (batch["labels"],)))


MODELS: dict[str, Callable[[Path], Trained]] = {
    "FashionMNIST CNN": cnn,
    "FashionMNIST MLP": mlp,
    "reviews, lengths vary": reviews,
    "character transformer": characters,
    "BERT from a configuration": transformers,
}


def _train(model: nn.Module, dataset: Any, steps: int, loss: Callable[..., torch.Tensor]) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(steps):
        batch = dataset.batch(torch.randint(0, len(dataset), (64,)))
        loss(*batch).backward()
        optimizer.step()
        optimizer.zero_grad()


def _batches(dataset: Any, size: int, count: int) -> Iterator[tuple[torch.Tensor, ...]]:
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))
    for part in order[: size * count].split(size):
        yield dataset.batch(part)


def _accuracy(output: Any, batch: Any) -> float:
    scores = output["logits"] if isinstance(output, dict) else output
    return float((scores.argmax(-1) == batch[-1]).float().mean())
