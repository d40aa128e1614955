"""Encoder and head are separate attributes; the optimizer was given the encoder only."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.encoder(x))


net = Net()
optimizer = torch.optim.AdamW(net.encoder.parameters(), lr=1e-3)  # error: parameters-not-optimized
loader = DataLoader(TensorDataset(torch.randn(128, 10), torch.randint(0, 4, (128,))), batch_size=16, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
