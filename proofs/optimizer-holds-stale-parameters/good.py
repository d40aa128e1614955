"""Train on one task, then fine-tune on a second task with a new head."""

import sys

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(4000, 10)
features = torch.tanh(x @ torch.randn(10, 8))
first = (features @ torch.randn(8, 6)).argmax(1)
second = (features @ torch.randn(8, 8)).argmax(1)
first_set = TensorDataset(x[:2000], first[:2000])
second_set = TensorDataset(x[2000:3000], second[2000:3000])
criterion = nn.CrossEntropyLoss()


def train(train_set):
    for _ in range(8):
        for inputs, labels in DataLoader(train_set, batch_size=50, shuffle=True):
            optimizer.zero_grad()
            criterion(model(inputs), labels).backward()
            optimizer.step()


model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())
model.append(nn.Linear(16, 6))
optimizer = optim.Adam(model.parameters(), lr=2e-3)
train(first_set)
model[-1] = nn.Linear(16, 8)
optimizer = optim.Adam(model.parameters())
train(second_set)
model.eval()
with torch.no_grad():
    accuracy = (model(x[3000:]).argmax(1) == second[3000:]).float().mean().item()
print(f"result: {accuracy:.4f}")
