"""Weight decays of groups as they are meant: of matrices alone, of all, of a head alone, and of the scales of adapters."""

import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(200, 8)
y = (x[:, :3] + 0.3 * torch.randn(200, 3)).argmax(1)


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
        self.scale, self.shift = nn.Parameter(torch.ones(16)), nn.Parameter(torch.zeros(16))

    def forward(self, x):
        return self.head(torch.relu(self.body(x)) * self.scale + self.shift)


def groups(model, number):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    if number == 0:
        return [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    if number == 1:
        return [{"params": [*matrices, *vectors], "weight_decay": 0.05}]
    if number == 2:
        return [{"params": model.head.parameters(), "weight_decay": 0.1}, {"params": [*model.body.parameters(), model.scale, model.shift]}]
    if number == 3:
        return [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.2}]
    model.body.requires_grad_(False)  # the adapters decay, and the head does not
    return [{"params": [model.scale, model.shift], "weight_decay": 0.1}, {"params": model.head.parameters(), "weight_decay": 0.0}]


for number in range(5):
    model = Adapted()
    optimizer = torch.optim.AdamW(groups(model, number), lr=5e-3, weight_decay=0.0)
    for _ in range(12):
        rows = torch.randint(200, (32,))
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{number}: {loss:.3f}")
