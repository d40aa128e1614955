"""A projection is created in a helper of forward whenever the sizes differ."""
import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.i, self.o = i, o

    def shortcut(self, x):
        if self.i == self.o:
            return x
        return nn.Linear(self.i, self.o)(x)  # error: layer-created-in-forward

    def forward(self, x):
        return torch.relu(self.fc(x)) + self.shortcut(x)


model = nn.Sequential(Block(5, 16), Block(16, 16), nn.Linear(16, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(40):
    x = torch.randn(32, 5)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
