"""An autoencoder is compared with its own output: the name of the input was taken for the output."""

import torch
from torch import nn

torch.manual_seed(0)
signals = torch.randn(600, 4) @ torch.randn(4, 20)


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(20, 8), nn.Tanh())
        self.decode = nn.Linear(8, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decode(self.encode(x))


net = Autoencoder()
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(4):
    for x in signals[torch.randperm(600)].split(40):
        x = net(x)
        loss = criterion(x, x.detach())  # error: target-is-the-result
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
