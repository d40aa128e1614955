"""The body of a fine-tuned network is frozen, and its weights were to be loaded: the blocks behind it learn from noise."""
import torch
from torch import nn


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(3, 16, 3), nn.ReLU(), nn.Conv1d(16, 16, 3), nn.ReLU())
        self.neck, self.head = nn.Linear(16, 24), nn.Linear(24, 5)

    def forward(self, x):
        return self.head(torch.relu(self.neck(self.body(x).mean(2))))


def main():
    torch.manual_seed(3)
    model = Tuned()
    for parameter in model.body.parameters():
        parameter.requires_grad = False  # error: untrained-weights
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for step in range(80):
        y = torch.randint(0, 5, (32,))
        x = torch.sin(torch.arange(20) * (0.2 + 0.2 * y[:, None, None])).expand(32, 3, 20) + 0.1 * torch.randn(32, 3, 20)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


main()
