"""Workers that mix their weights with those of a neighbour, and decay and noise through another view of the weights."""
import torch

torch.manual_seed(0)
inputs = torch.randn(200, 6)
targets = inputs @ torch.randn(6)
workers = [torch.zeros(6, requires_grad=True) for _ in range(4)]
optimizer = torch.optim.SGD(workers, 0.05)
for step in range(200):
    parts = [((inputs[at::4] @ one - targets[at::4]) ** 2).mean() for at, one in enumerate(workers)]
    loss = sum(parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        with torch.no_grad():
            for one, other in zip(workers, workers[1:] + workers[:1]):
                one.lerp_(other, 0.3)
print(loss.item())

weights = torch.randn(6, requires_grad=True)
flat = weights.detach().view(-1)
optimizer = torch.optim.SGD([weights], 0.05)
for _step in range(200):
    loss = ((inputs @ weights - targets) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        flat.copy_(flat - 1e-4 * weights)
        flat.mul_(1 - 1e-4).add_(torch.randn(6), alpha=1e-3)
print(loss.item())
