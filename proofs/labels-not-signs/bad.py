"""Learn which digits are alike from pairs, with labels of 0 and 1 or of -1 and 1."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
data = load_digits()
x, y = torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
order = torch.randperm(len(x))
train, test = order[:1200], order[1200:]

encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for _step in range(400):
    first, second = train[torch.randint(0, len(train), (2, 128))]
    alike = (y[first] == y[second]).float()
    loss = F.cosine_embedding_loss(encoder(x[first]), encoder(x[second]), alike)
    optimizer.zero_grad()
    loss.backward()  # error: labels-not-signs
    optimizer.step()

with torch.no_grad():
    features = F.normalize(encoder(x), dim=1)
    nearest = (features[test] @ features[train].t()).argmax(1)
    accuracy = (y[train][nearest] == y[test]).float().mean().item()
print(f"result: {accuracy:.4f}")
