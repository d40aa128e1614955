"""Classify film reviews as good or bad: 10,662 sentences (Pang and Lee 2005), a tenth of them held out.

    python train.py --data data/rt-polarity --max-epochs 6
    python train.py --predict reviews.txt
    python train.py --resume auto --export onnx

The two files are at https://www.cs.cornell.edu/people/pabo/movie-review-data. For your own sentences, give ts.data.text
one file per label, or a file with a text, a tab and a label on each line.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    data: Path = Path("data")
    """The folder with the two files, or the one above it."""
    batch_size: int = 64
    """Sentences in a batch."""
    lr: float = 2e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Files with a review on each line, to classify with the best checkpoint in `out`, without training."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


class Bag(nn.Module):
    """Sums the embeddings of words and of pairs of neighbours; pairs are hashed, as in fastText."""

    def __init__(self, words: int, width: int = 32, pairs: int = 1 << 15) -> None:
        super().__init__()
        self.pairs = pairs
        self.word = nn.Embedding(words, width, padding_idx=0)
        self.pair = nn.Embedding(pairs, width, padding_idx=0)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(width, 2)
        nn.init.normal_(self.word.weight, std=0.05)
        nn.init.normal_(self.pair.weight, std=0.01)
        with torch.no_grad():  # padding adds nothing to the sum
            self.word.weight[0], self.pair.weight[0] = 0, 0

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, 2) for tokens of shape (batch, longest), padded with 0."""
        left, right = tokens[:, :-1], tokens[:, 1:]
        hashed = (1 + (left * 7919 + right) % (self.pairs - 1)) * (right > 0)
        said = self.word(tokens).sum(dim=1) + self.pair(hashed).sum(dim=1)
        return self.head(self.dropout(said / lengths.unsqueeze(1).sqrt()))


settings = Settings.from_flags(out="runs/text", max_epochs=6, clip_norm=1.0)
if settings.predict:
    trained = ts.Trained(settings.out)
    for answer in trained.predict(Bag(len(trained.preparation.vocab)), settings.predict):
        print(answer)
    raise SystemExit
run = ts.Run(settings)


def forget(tokens, lengths, y):
    """Replace 30 % of the words of a batch by the unknown token 1, so that reviews are not memorized."""
    lost = torch.rand(tokens.shape, device=tokens.device) < 0.3
    return tokens.masked_fill(lost & (tokens > 0), 1), lengths, y


# data: the words of a sentence as numbers, padded with 0; its length in words; label 0 for bad, 1 for good
folder = settings.data / "rt-polarity" if (settings.data / "rt-polarity").is_dir() else settings.data
files = {"bad": folder / "rt-polarity.neg", "good": folder / "rt-polarity.pos"}
train_set, held_out = ts.data.text(files, encoding="latin-1", min_count=2).split(0.9, seed=0)
train = run.loader(train_set, settings.batch_size, shuffle=True, transform=forget)
test = run.loader(held_out, batch_size=256)


model = run.model(Bag(len(train_set.vocab)))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=0.3, fused=True))
run.scheduler(ts.schedules.warmup_linear(optimizer, warmup=0.1))
criterion = nn.CrossEntropyLoss()

for epoch in run.epochs():
    for tokens, lengths, y in run.train(train, model):
        with run.autocast():
            loss = criterion(model(tokens, lengths), y)
        run.step(loss)
        run.log({"loss": loss})

    with run.evaluate(model):
        accuracy = run.mean("accuracy")
        for tokens, lengths, y in run.batches(test):
            accuracy.update(model(tokens, lengths).argmax(dim=1) == y)
    run.log({"accuracy": accuracy})
    run.save(metric=accuracy, mode="max")
    print(f"epoch {epoch + 1}: held-out accuracy {accuracy:.2%}")

if settings.export:
    run.export(model, test, to=settings.export, best=True)
