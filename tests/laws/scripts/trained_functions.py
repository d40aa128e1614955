"""Functions without modules that are trained: by taken gradients, by transformed ones, and by an optimizer."""

import torch


def predict(weights: dict[str, torch.Tensor], x: torch.Tensor, drop: float = 0.2) -> torch.Tensor:
    hidden = torch.tanh(x @ weights["w"] + weights["b"])
    if drop > 0:
        hidden = torch.nn.functional.dropout(hidden * (torch.rand(hidden.shape) > drop).float(), drop)
    return hidden @ weights["v"]


def descend(weights: dict[str, torch.Tensor], slopes: list[torch.Tensor], velocity: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for weight, slope, v in zip(weights.values(), slopes, velocity, strict=True):
            v = 0.9 * v + slope
            weight.sub_(0.05 * v)


torch.manual_seed(8)
x = torch.randn(60, 5)
y, said, best = x.sum(1, keepdim=True), list[object](), float("inf")
weights = {"w": torch.randn(5, 6).requires_grad_(), "b": torch.zeros(6, requires_grad=True)}
weights["v"] = torch.randn(6, 1).requires_grad_()
velocity = [torch.zeros_like(weight) for weight in weights.values()]
x_train, x_val = x[:40], x[40:]
kept = dict(weights)
for _ in range(14):
    rows = torch.randperm(40)[:20]
    loss = (predict(weights, x_train[rows]) - y[rows]).square().mean()
    descend(weights, list(torch.autograd.grad(loss, list(weights.values()))), velocity)
    with torch.no_grad():
        val_error = 0.0
        for part in torch.arange(20).split(10):
            val_error = float((predict(weights, x_val[part]) - y[40:][part]).abs().mean())
    if val_error < best:
        best, kept = val_error, {name: weight.detach().clone() for name, weight in weights.items()}
    said += [loss.detach(), val_error]
adam = torch.optim.Adam([weights["w"]], lr=0.01)
for _ in range(4):
    adam.zero_grad()
    (predict(weights, x_train, 0.0) - y[:40]).square().mean().backward()
    adam.step()
plain = {name: weight.detach() for name, weight in kept.items()}
for _ in range(4):
    slopes = torch.func.grad(lambda ws: (predict(ws, x, 0.0) - y).square().mean())(plain)
    plain = {name: weight - 0.05 * slopes[name] for name, weight in plain.items()}
results = [*said, *plain.values(), *(weight.detach() for weight in weights.values())]
print(*(float(torch.as_tensor(one).sum()) for one in results))
