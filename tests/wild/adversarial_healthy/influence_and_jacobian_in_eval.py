"""After training: per-sample gradients and Jacobians in eval mode, with gradients on and no backward()."""
import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, vmap
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(96, 4), torch.randint(0, 2, (96,))
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True):
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()
model.eval()
params = {k: v.detach() for k, v in model.named_parameters()}


def loss_of(p, x, y):
    return nn.functional.cross_entropy(functional_call(model, p, (x[None],)), y[None])


scores = []
for x, y in DataLoader(TensorDataset(X, Y), batch_size=24):
    per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))(params, x, y)
    scores.append(sum(g.flatten(1).pow(2).sum(1) for g in per_sample.values()))
    g = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters()))
    J = jacrev(lambda v: functional_call(model, params, (v[None],))[0])(x[0])
print(torch.cat(scores).max(), J.shape, len(g))
