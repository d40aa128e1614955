"""Features of a fixed network with dropout train another one: the fixed one was never set to eval mode."""
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(200, 5), torch.randint(0, 3, (200,))


class Guide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(5, 32), nn.Linear(32, 3)

    def forward(self, x):
        return self.head(nn.functional.dropout(self.body(x).relu(), 0.4, self.training))


def fit(model, steps, wanted):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        rows = torch.randint(0, 200, (20,))
        opt.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), wanted(rows)).backward()
        opt.step()


guide, small = Guide(), nn.Linear(5, 3)
fit(guide, 30, lambda rows: y[rows])


def soft(rows):
    with torch.no_grad():
        return guide(x[rows]).softmax(1)  # error: eval-mode-missing


fit(small, 40, soft)
guide.eval()
with torch.no_grad():
    print((guide(x).argmax(1) == small(x).argmax(1)).float().mean().item())
