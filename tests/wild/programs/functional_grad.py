"""Healthy: torch.func training: functional_call, grad_and_value, vmap per-sample norms; no backward, no torch optimizer."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, vmap

torch.manual_seed(0)
torch.set_num_threads(1)

model = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 3))
params = {k: v.detach() for k, v in model.named_parameters()}
momentum = {k: torch.zeros_like(v) for k, v in params.items()}

proj = torch.randn(5, 3)
x_all = torch.randn(640, 5)
y_all = (x_all @ proj).argmax(-1)
x_train, y_train, x_val, y_val = x_all[:512], y_all[:512], x_all[512:], y_all[512:]


def loss_fn(params, x, y):
    logits = functional_call(model, params, (x,))
    return F.cross_entropy(logits, y)


@torch.no_grad()
def sgd_update(params, momentum, grads, lr=0.1, beta=0.9):
    momentum = {k: beta * momentum[k] + grads[k] for k in params}
    return {k: params[k] - lr * momentum[k] for k in params}, momentum


for epoch in range(6):
    for idx in torch.randperm(512).split(64):
        grads, loss = grad_and_value(loss_fn)(params, x_train[idx], y_train[idx])
        params, momentum = sgd_update(params, momentum, grads)
    print(f"epoch {epoch} loss {loss:.4f}")

# per-sample gradient norms of the trained model
per_sample = vmap(grad(lambda p, x, y: loss_fn(p, x[None], y[None])), in_dims=(None, 0, 0))(params, x_val, y_val)
norms = torch.stack([g.flatten(1).norm(dim=1) for g in per_sample.values()]).norm(dim=0)
acc = (functional_call(model, params, (x_val,)).argmax(-1) == y_val).float().mean()
print(f"val accuracy {acc:.4f}, median per-sample gradient norm {norms.median():.4f}")
