"""Learn the probability of randomly drawn labels from eight inputs."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(4000, 8)
score = 2 * torch.tanh(x @ torch.randn(8, 6)) @ torch.randn(6)
y = torch.bernoulli(torch.sigmoid(score - 1))
loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for _epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        probabilities = model(inputs).squeeze(1)
        loss = criterion(probabilities, labels)  # error: sigmoid-before-bce-with-logits
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    predicted = model(x[2000:]).squeeze(1)
    log_loss = nn.functional.binary_cross_entropy(predicted, y[2000:]).item()
print(f"result: {log_loss:.4f}")
