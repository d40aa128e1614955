"""Compress 32 correlated sensors to 6 numbers and reconstruct them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.tanh(torch.randn(3000, 6) @ torch.randn(6, 32) / 2)
x = x + 0.05 * torch.randn(3000, 32)
loader = DataLoader(TensorDataset(x[:2000]), batch_size=50, shuffle=True)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 6))
        self.decoder = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 16))
        self.output = nn.Linear(16, 32)

    def forward(self, inputs):
        return self.output(self.decoder(self.encoder(inputs)))


model = AutoEncoder()
criterion = nn.MSELoss()
parameters = model.parameters()
optimizer = torch.optim.Adam(parameters, lr=2e-3)
for _epoch in range(12):
    for (inputs,) in loader:
        optimizer.zero_grad()
        criterion(model(inputs), inputs).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print(f"result: {criterion(model(x[2000:]), x[2000:]).item():.4f}")
