"""Healthy: SVRG: a full gradient at a snapshot each epoch, then steps on corrected gradients that are written into .grad by hand."""
import copy

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)

data = load_breast_cancer()
x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
y = torch.tensor(data.target, dtype=torch.float32)
model = nn.Linear(30, 1)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, weight_decay=1e-3)
snapshot = copy.deepcopy(model)


def gradients_of(net, index):
    loss = loss_fn(net(x[index]).squeeze(1), y[index])
    return torch.autograd.grad(loss, list(net.parameters())), loss.item()


everything = torch.arange(len(x))
for outer in range(8):
    snapshot.load_state_dict(model.state_dict())
    mu, full = gradients_of(snapshot, everything)
    variance = []
    for index in torch.randperm(len(x)).split(16):
        g, _ = gradients_of(model, index)
        g_snapshot, _ = gradients_of(snapshot, index)
        for p, a, b, c in zip(model.parameters(), g, g_snapshot, mu):
            p.grad = a - b + c
        variance.append((g[0] - g_snapshot[0]).norm().item() / g[0].norm().item())
        optimizer.step()
    print(f"epoch {outer}: full loss {full:.4f}, size of the correction {sum(variance) / len(variance):.3f}")
with torch.no_grad():
    print(f"accuracy {((model(x).squeeze(1) > 0) == y.bool()).float().mean():.4f}")
