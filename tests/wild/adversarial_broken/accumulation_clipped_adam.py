"""Adam with clipping: the limit cuts the sum of four micro-batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Fitter:
    def __init__(self, every=4):
        self.every, self.micro = every, 0
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=1e-3)

    def backward(self, loss):
        loss.backward()  # error: accumulation-not-normalised
        self.micro += 1
        if self.micro == self.every:
            nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
            self.opt.step()
            self.opt.zero_grad(set_to_none=True)
            self.micro = 0

    def fit(self, loader):
        for x, y in loader:
            self.backward(nn.functional.mse_loss(self.net(x), y))


fitter = Fitter()
data = DataLoader(TensorDataset(torch.randn(256, 5), torch.randn(256, 1) + 3), batch_size=8, shuffle=True)
for _ in range(3):
    fitter.fit(data)
