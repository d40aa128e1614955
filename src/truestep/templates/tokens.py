"""Generate text like Shakespeare's, by character: a small transformer on 1.1 MB of his plays, a tenth held out.

    python train.py --data data/tinyshakespeare/input.txt --max-steps 1200
    python train.py --predict beginning.txt
    python train.py --resume auto --export onnx

The text is at https://github.com/karpathy/char-rnn/tree/master/data/tinyshakespeare; any other text works too.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

import truestep as ts


@dataclass
class Settings(ts.Settings):
    """Settings of the command line."""

    data: Path = Path("data")
    """A text file, or the folder above tinyshakespeare/input.txt."""
    batch_size: int = 32
    """Blocks in a batch."""
    block: int = 64
    """Characters in a block, the context length."""
    width: int = 128
    """Width of the embeddings."""
    layers: int = 2
    """Layers of the transformer."""
    lr: float = 3e-3
    """Peak learning rate."""
    predict: tuple[Path, ...] = ()
    """Texts to continue with the best checkpoint of the run in `out`, without training."""
    export: Literal["pt2", "onnx", "aoti"] | None = None
    """Format to export the best checkpoint to at the end; `--resume auto` goes straight there after a training."""


class Writer(nn.Module):
    """Predicts the next character at every position, from the characters before it."""

    def __init__(self, characters: int, block: int, width: int, layers: int) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(characters, width), nn.Embedding(block, width)
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, **options) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)
        for table in (self.character, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return scores of shape (batch, block, characters) for tokens of shape (batch, block)."""
        block = tokens.shape[1]
        later = nn.Transformer.generate_square_subsequent_mask(block, device=tokens.device)
        x = self.character(tokens) + self.place.weight[:block]
        for layer in self.layers:
            x = layer(x, src_mask=later, is_causal=True)
        return self.head(self.norm(x))


@torch.no_grad()
def continued(model: Writer, tokens: torch.Tensor, block: int, count: int = 300) -> torch.Tensor:
    """Return tokens followed by `count` more, each drawn with the probabilities of the model in eval mode."""
    for _ in range(count):
        scores = model(tokens[None, -block:])[0, -1]
        tokens = torch.cat((tokens, scores.softmax(dim=-1).multinomial(1)))
    return tokens


settings = Settings.from_flags(out="runs/tokens", max_steps=1200, clip_norm=1.0)
if settings.predict:
    trained = ts.Trained(settings.out)
    text, block = trained.preparation, trained.settings["block"]
    model = trained.load(Writer(len(text.classes), block, trained.settings["width"], trained.settings["layers"]))
    for path in settings.predict:
        (beginning,) = text.read(path)
        print(text.decode(continued(model, beginning.fields[0].to(trained.device), block)))
    raise SystemExit
run = ts.Run(settings)

# data: blocks of characters as numbers, and the same blocks shifted by one character
text = settings.data / "tinyshakespeare/input.txt" if settings.data.is_dir() else settings.data
train_set, held_out = ts.data.tokens(text, block=settings.block).split(0.9)
train = run.loader(train_set, settings.batch_size, shuffle=True)
test = run.loader(held_out, batch_size=128)

model = run.model(Writer(len(train_set.classes), settings.block, settings.width, settings.layers))
groups = ts.parameter_groups(model, weight_decay=0.1)
optimizer = run.optimizer(torch.optim.AdamW(groups, lr=settings.lr, betas=(0.9, 0.99), fused=True))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.05, min_lr_ratio=0.05))


def cross_entropy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean over all positions, in nats."""
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


for _ in run.epochs():
    for x, y in run.train(train, model):
        with run.autocast():
            loss = cross_entropy(x, y)
        run.step(loss)
        run.log({"loss": loss, "grad_norm": run.grad_norm})

    with run.evaluate(model):
        nats = run.mean("nats")
        for x, y in run.batches(test):
            nats.update(cross_entropy(x, y), y.numel())
    bits = float(nats) / math.log(2)
    run.log({"bits": bits})
    run.save(metric=bits)
    print(f"step {run.global_step}: {bits:.3f} bits for each character of the held-out text")

with run.evaluate(model):
    print(train_set.decode(continued(model, train_set.encode("\n").to(run.device), settings.block)))

if settings.export:
    run.export(model, test, to=settings.export, best=True)
