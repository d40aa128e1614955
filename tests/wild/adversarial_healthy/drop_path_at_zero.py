"""A stochastic depth module at rate zero (the default of the model zoo), evaluation without eval()."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


class DropPath(nn.Module):
    def __init__(self, drop_prob=0.0):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep = 1 - self.drop_prob
        mask = x.new_empty(x.shape[0], *[1] * (x.ndim - 1)).bernoulli_(keep)
        return x * mask / keep


class Block(nn.Module):
    def __init__(self, d, rate):
        super().__init__()
        self.norm, self.fc, self.drop_path = nn.LayerNorm(d), nn.Linear(d, d), DropPath(rate)

    def forward(self, x):
        return x + self.drop_path(torch.relu(self.fc(self.norm(x))))


model = nn.Sequential(nn.Linear(5, 16), Block(16, 0.0), Block(16, 0.0), nn.Linear(16, 2))
train = DataLoader(TensorDataset(torch.randn(128, 5), torch.randint(0, 2, (128,))), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(64, 5), torch.randint(0, 2, (64,))), batch_size=16)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in train:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
    with torch.inference_mode():
        print(sum((model(x).argmax(-1) == y).float().mean().item() for x, y in val) / len(val))
