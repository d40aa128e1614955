"""Residual blocks in a Python list."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class ResNet(nn.Module):
    def __init__(self, depth=3, d=16):
        super().__init__()
        self.stem = nn.Linear(6, d)
        self.blocks = [nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d)) for _ in range(depth)]
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)  # error: layers-in-plain-container
        return self.head(x)


model = ResNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
dl = DataLoader(TensorDataset(torch.randn(96, 6), torch.randint(0, 2, (96,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in dl:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
