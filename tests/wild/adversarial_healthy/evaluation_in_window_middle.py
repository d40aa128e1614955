"""Evaluation and gradient logging in the middle of an accumulation window of varying length."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(200, 5), torch.randn(200, 1)), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(40, 5), torch.randn(40, 1)), batch_size=10)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
window, micro = 2, 0
for epoch in range(3):
    window += epoch
    for i, (x, y) in enumerate(train):
        loss = nn.functional.mse_loss(model(x), y) / window
        loss.backward()
        micro += 1
        if i % 7 == 3:
            print("grad", model[0].weight.grad.abs().mean().item())
            was = model.training
            model.eval()
            with torch.no_grad():
                print("val", sum(nn.functional.mse_loss(model(a), b).item() for a, b in val) / len(val))
            model.train(was)
        if micro == window or i + 1 == len(train):
            optimizer.step()
            optimizer.zero_grad()
            micro = 0
