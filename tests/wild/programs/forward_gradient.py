"""Healthy: forward-mode gradients: jvp along a random direction, no backward at all, estimates written into .grad for SGD."""
import torch
import torch.func as fc
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)

x = torch.randn(400, 5)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.0]) > 0).long()
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
names = [n for n, _ in model.named_parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.998)


def f(params, x, y):
    return nn.functional.cross_entropy(fc.functional_call(model, dict(zip(names, params)), (x,)), y)


with torch.no_grad():
    start = f(tuple(model.parameters()), x, y).item()
    for step in range(400):
        index = torch.randint(0, 400, (64,))
        params = tuple(model.parameters())
        v_params = tuple(torch.randn_like(p) for p in params)
        loss, jvp = fc.jvp(lambda *p: f(p, x[index], y[index]), params, v_params)
        for p, v in zip(params, v_params):
            p.grad = v * jvp
        optimizer.step()
        scheduler.step()
    print(f"loss {start:.4f} -> {f(tuple(model.parameters()), x, y).item():.4f}, accuracy {(model(x).argmax(1) == y).float().mean():.3f}")
