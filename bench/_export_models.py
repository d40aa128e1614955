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


class Cached(nn.Module):
    """A character model that reads one token at a time: what it keeps of earlier ones is an input, and an output.

    A cache has the shape (batch, 2 * layers, heads, earlier tokens, width of a head): keys and values of each layer.
    """

    def __init__(self, characters: int, block: int = 64, width: int = 128, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.character, self.place = nn.Embedding(characters, width), nn.Embedding(block, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.projections = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def empty(self, batch: int) -> torch.Tensor:
        """Return the cache of no token."""
        width = self.character.embedding_dim // self.heads
        return torch.zeros(batch, 2 * len(self.wide), self.heads, 0, width)

    def forward(self, tokens: torch.Tensor, cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return scores of shape (batch, tokens, characters), and the cache with the tokens.

        Args:
            tokens: of shape (batch, tokens), in general one.
            cache: of the tokens before.
        """
        count, past = tokens.shape[1], cache.shape[3]
        x = self.character(tokens) + self.place.weight[past : past + count]
        seen = torch.ones(count, past + count, dtype=torch.bool).tril(past)
        kept = []
        for at in range(len(self.wide)):
            split = self.projections[at](self.norms[2 * at](x)).unflatten(2, (3, self.heads, -1)).transpose(1, 3)
            query, key, value = split.unbind(2)
            key, value = torch.cat((cache[:, 2 * at], key), 2), torch.cat((cache[:, 2 * at + 1], value), 2)
            kept += [key, value]
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
            x = x + self.outputs[at](mixed.transpose(1, 2).flatten(2))
            x = x + self.narrow[at](functional.gelu(self.wide[at](self.norms[2 * at + 1](x))))
        return self.head(self.norm(x)), torch.stack(kept, 1)


class Remembering(Cached):
    """The same model with its cache in an attribute, which no graph can have."""

    cache: torch.Tensor

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """Return the scores of one more token."""
        scores, self.cache = super().forward(tokens, self.cache)
        return scores


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


def cached(folder: Path) -> Trained:
    """The character model with a cache, on plays of Shakespeare: tokens with the caches of different lengths."""
    train, test = data.tokens(folder / "tinyshakespeare/input.txt", block=64).split(0.9)
    model = Cached(len(train.classes))
    _train(model, train, 40, lambda x, y: functional.cross_entropy(_scores(model, x).flatten(0, 1), y.flatten()))
    batches = []
    with torch.no_grad():
        for (tokens, after), past in zip(_batches(test, 32, 4), (5, 17, 31, 63), strict=True):
            cache = model.empty(len(tokens))
            for at in range(past):
                cache = model(tokens[:, at : at + 1], cache)[1]
            batches.append((tokens[:, past : past + 1], cache, after[:, past : past + 1]))
    return Trained(model, batches, _accuracy)


def remembering(folder: Path) -> Trained:
    """The character model with its cache in an attribute."""
    trained = cached(folder)
    model = Remembering(int(trained.model.head.out_features))  # type: ignore[union-attr]
    model.load_state_dict(trained.model.state_dict())
    tokens, model.cache, after = trained.batches[0]
    return Trained(model, [(tokens, after)], _accuracy)


def _scores(model: Cached, tokens: torch.Tensor) -> torch.Tensor:
    return model(tokens, model.empty(len(tokens)))[0]


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
    "characters one by one": cached,
    "cache in an attribute": remembering,
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
