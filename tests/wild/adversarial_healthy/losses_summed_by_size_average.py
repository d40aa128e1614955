"""Healthy: a test loss that is summed by the older argument `size_average`, and divided by the number of samples."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
train = DataLoader(TensorDataset(x[order[:1200]], y[order[:1200]]), 64, shuffle=True)
test = DataLoader(TensorDataset(x[order[1200:]], y[order[1200:]]), 100)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    model.train()
    for data, target in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in test:
            output = model(data)
            test_loss += F.cross_entropy(output, target, size_average=False).item()
            chosen = output.data.max(1, keepdim=True)[1]
            correct += chosen.eq(target.data.view_as(chosen)).type(torch.FloatTensor).sum().item()
    test_loss /= len(test.dataset)
    print(f"epoch {epoch}: average loss {test_loss:.4f}, accuracy {100.0 * correct / len(test.dataset):.1f} %")
