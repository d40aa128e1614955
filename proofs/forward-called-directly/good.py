"""Learn a rare class: a forward hook adds the log prior to the training logits."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(40000, 16)
score = torch.tanh(x @ torch.randn(16, 8) / 2) @ torch.randn(8)
y = (score + 0.5 * torch.randn(40000) > 0).long()
common, rare = (y == 0).nonzero()[:, 0], (y == 1).nonzero()[:, 0]
train = torch.cat([common[:2850], rare[:150]])
test = torch.cat([common[-1000:], rare[-1000:]])
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def adjust_logits(module, args, logits):
    return logits + torch.tensor([0.95, 0.05]).log() if module.training else logits


model.register_forward_hook(adjust_logits)
for _epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        logits = model(inputs)
        criterion(logits, labels).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
print(f"result: {accuracy:.4f}")
