"""A small transformer with a warm-up and a cosine, as a function of the step that gives the learning rate."""

import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(2)
torch.set_num_threads(1)
PEAK, FLOOR, WARM, TOTAL = 2e-3, 1e-5, 20, 160


class Reader(nn.Module):
    """Embedding, one layer of attention, mean over the words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, text):
        return self.head(self.layer(self.words(text)).mean(1))


def rate_at(step):
    """Return the learning rate of a step."""
    if step < WARM:
        return PEAK * step / WARM
    part = (step - WARM) / (TOTAL - WARM)
    return FLOOR + 0.5 * (PEAK - FLOOR) * (1 + math.cos(math.pi * part))


texts = torch.randint(0, 20, (800, 8))
labels = texts[:, 0] % 3
model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK)
scheduler = LambdaLR(optimizer, lr_lambda=rate_at)  # error: lambda-returns-rate
for _ in range(TOTAL):
    rows = torch.randint(0, len(texts), (32,))
    loss = nn.functional.cross_entropy(model(texts[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
