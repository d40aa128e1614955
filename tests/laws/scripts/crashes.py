import torch
from torch import nn

torch.manual_seed(12)


class Fragile(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 3)))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 6:
            return self.inner(x[:, :3])
        return self.inner(x)


model = Fragile()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
    loss.backward()
    optimizer.step()
    print(step, repr(loss.item()), flush=True)
