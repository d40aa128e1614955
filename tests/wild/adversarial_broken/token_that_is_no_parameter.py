"""A class token of zeros and random positions are plain tensors of a transformer that is trained in a function."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, size=16, length=10):
        super().__init__()
        self.embed = nn.Linear(3, size)
        self.cls_token, self.pos = torch.zeros(1, 1, size), nn.Parameter(0.02 * torch.randn(1, length + 1, size))  # error: layers-in-plain-container
        self.block = nn.TransformerEncoderLayer(size, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(size, 4)

    def forward(self, x):
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.embed(x)], 1) + self.pos
        return self.head(self.block(x)[:, 0])


def fit(steps):
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        y = torch.randint(0, 4, (32,))
        x = torch.sin(torch.arange(10)[None, :, None] * (0.3 + 0.3 * y[:, None, None])) + 0.2 * torch.randn(32, 10, 3)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(f"{fit(50):.3f}")
