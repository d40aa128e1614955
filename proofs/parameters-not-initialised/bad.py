import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))  # error: parameters-not-initialised
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


digits = load_digits()
pixels, labels = torch.tensor(digits.data, dtype=torch.float32) * 255 / 16, torch.tensor(digits.target)
images = pixels / 255
first = pixels[:64].clone()
print(f"pixels from {first.min():.0f} to {first.max():.0f}")
del first  # 64 x 64 values, as the weight of the first layer
model = nn.Sequential(Layer(64, 64), nn.ReLU(), nn.Linear(64, 10))
split = torch.randperm(1797)
train, test = split[:1200], split[1200:]

optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(12):
    for rows in train[torch.randperm(1200)].split(32):
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print(f"result: {(model(images[test]).argmax(1) == labels[test]).float().mean():.4f}")
