"""Write like Shakespeare, one character after another: a small transformer on 1.1 MB of his plays, a tenth held out.

python examples/shakespeare.py --data data/tinyshakespeare/input.txt --steps 1200
"""

import argparse
import math
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import truestep as ts

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument(
    "--data", type=Path, default=Path(os.environ.get("TRUESTEP_DATA", "data"), "tinyshakespeare/input.txt")
)
parser.add_argument("--steps", type=int, default=1200)
parser.add_argument("--block", type=int, default=64, help="characters that are read at once")
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--out", default="runs/shakespeare", help="where checkpoints and metrics go")
parser.add_argument("--resume", help='"auto" goes on with the run in --out')
args = parser.parse_args()

run = ts.Run(out=args.out, resume=args.resume, seed=args.seed, max_steps=args.steps, clip_norm=1.0)

train_set, held_out = ts.data.tokens(args.data, block=args.block).split(0.9)
train = run.loader(train_set, batch_size=32, shuffle=True)
test = run.loader(held_out, batch_size=128)


class Writer(nn.Module):
    """Scores every character as the next one, at every place, from what came before."""

    def __init__(self, characters: int, block: int, width: int, layers: int) -> None:
        super().__init__()
        self.character, self.place = nn.Embedding(characters, width), nn.Embedding(block, width)
        options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, **options) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)
        for table in (self.character, self.place):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:  # (batch, block) -> (batch, block, characters)
        block = tokens.shape[1]
        later = nn.Transformer.generate_square_subsequent_mask(block, device=tokens.device)
        x = self.character(tokens) + self.place.weight[:block]
        for layer in self.layers:
            x = layer(x, src_mask=later, is_causal=True)
        return self.head(self.norm(x))


model = run.model(Writer(len(train_set.classes), args.block, args.width, args.layers))
matrices = [p for p in model.parameters() if p.dim() > 1]
vectors = [p for p in model.parameters() if p.dim() < 2]  # biases and norms, which are not decayed
groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
optimizer = run.optimizer(torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.99), fused=True))
run.scheduler(ts.schedules.warmup_cosine(optimizer, warmup=0.05, min_lr_ratio=0.05))


def cross_entropy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean over all places, in nats."""
    return functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


for _ in run.epochs():
    for x, y in run.train(train, model):
        loss = cross_entropy(x, y)
        run.step(loss)
        run.log({"loss": loss, "grad_norm": run.grad_norm})
    with run.evaluate(model):
        nats = sum(cross_entropy(x, y).item() * len(x) for x, y in run.batches(test)) / len(held_out)
    run.log({"bits": nats / math.log(2)})
    run.save(metric=nats)
    print(f"step {run.global_step}: {nats / math.log(2):.3f} bits for each character of the held-out text")

written = train_set.encode("\n").to(run.device)
with run.evaluate(model):
    for _ in range(300):
        scores = model(written[None, -args.block :])[0, -1]
        written = torch.cat((written, scores.softmax(dim=-1).multinomial(1)))
print(train_set.decode(written))
