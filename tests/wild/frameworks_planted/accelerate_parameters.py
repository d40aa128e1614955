"""Accelerate: heads in a plain dictionary, and an optimizer without the layer in the middle."""
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 16)
        self.heads = {"sign": nn.Linear(16, 2), "largest": nn.Linear(16, 3)}

    def forward(self, x):
        h = self.trunk(x).relu()
        return {name: head(h) for name, head in self.heads.items()}  # error: layers-in-plain-container


accelerator = Accelerator(cpu=True)
x = torch.randn(256, 8)
loader = DataLoader(TensorDataset(x, x[:, 0].gt(0).long(), x[:, :3].argmax(1)), batch_size=32, shuffle=True)
heads = Heads()
heads, optimizer, loader = accelerator.prepare(heads, torch.optim.Adam(heads.parameters(), lr=1e-2), loader)
for _ in range(3):
    for inputs, sign, largest in loader:
        optimizer.zero_grad()
        output = heads(inputs)
        loss = F.cross_entropy(output["sign"], sign) + F.cross_entropy(output["largest"], largest)
        accelerator.backward(loss)
        optimizer.step()
print(f"loss {loss.item():.2f}")

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
outer = [*model[0].parameters(), *model[4].parameters()]
model, optimizer = accelerator.prepare(model, torch.optim.SGD(outer, lr=0.1))  # error: parameters-not-optimized
for _ in range(3):
    for inputs, _, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        accelerator.backward(loss)
        optimizer.step()
print(f"loss {loss.item():.2f}")
