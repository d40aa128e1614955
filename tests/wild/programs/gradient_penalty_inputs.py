"""Healthy: input-gradient regularisation by double backpropagation (create_graph), inputs that require grad on purpose."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
torch.set_num_threads(1)

teacher = torch.randn(8)
X = torch.randn(800, 8)
Y = ((X @ teacher / 3).sin() > 0).long()
train_loader = DataLoader(TensorDataset(X[:640], Y[:640]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(X[640:], Y[640:]), batch_size=80)

model = nn.Sequential(nn.Linear(8, 64), nn.Softplus(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
lam = 0.01

for epoch in range(8):
    model.train()
    penalty_sum = 0.0
    for xb, yb in train_loader:
        xb = xb.clone().requires_grad_()
        logits = model(xb)
        ce = F.cross_entropy(logits, yb)
        (grad_x,) = torch.autograd.grad(ce * len(xb), xb, create_graph=True)
        penalty = grad_x.pow(2).sum(1).mean()
        loss = ce + lam * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        penalty_sum += penalty.item() * len(xb)

    model.eval()
    correct, n = 0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            correct += (model(xb).argmax(1) == yb).sum().item()
            n += len(yb)
    print(f"epoch {epoch} ce {ce.item():.3f} penalty {penalty_sum / 640:.3f} val acc {correct / n:.3f}")
