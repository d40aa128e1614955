"""Second-order ANIL: only the head adapts in the inner loop, body and initial head learn from the outer loss; learned inner rate."""
import torch
import torch.nn as nn

torch.manual_seed(8)
body = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 16), nn.Tanh())
head_weight = nn.Parameter(0.1 * torch.randn(1, 16))
head_bias = nn.Parameter(torch.zeros(1))
log_rate = nn.Parameter(torch.tensor(-2.0))
outer = torch.optim.Adam([{"params": body.parameters()}, {"params": [head_weight, head_bias]}, {"params": [log_rate], "lr": 0.01}], lr=5e-3)


def make_task():
    a, b = torch.rand(2) * 2 + 0.5
    return lambda x: a * torch.sin(b * x)


def draw(task, n):
    x = 6 * torch.rand(n, 1) - 3
    return x, task(x)


def adapt(x, y, steps, differentiable):
    w, b = head_weight, head_bias
    features = body(x)
    for _ in range(steps):
        loss = ((features @ w.T + b - y) ** 2).mean()
        dw, db = torch.autograd.grad(loss, (w, b), create_graph=differentiable, retain_graph=True)
        w, b = w - log_rate.exp() * dw, b - log_rate.exp() * db
    return w, b


losses = []
for episode in range(80):
    outer.zero_grad()
    outer_loss = 0.0
    for _ in range(3):
        task = make_task()
        w, b = adapt(*draw(task, 10), steps=2, differentiable=True)
        xq, yq = draw(task, 15)
        outer_loss = outer_loss + ((body(xq) @ w.T + b - yq) ** 2).mean()
    (outer_loss / 3).backward()
    outer.step()
    losses.append(outer_loss.item() / 3)

test = []
for _ in range(10):
    task = make_task()
    w, b = adapt(*draw(task, 10), steps=2, differentiable=False)
    with torch.no_grad():
        xq, yq = draw(task, 50)
        test.append(((body(xq) @ w.T + b - yq) ** 2).mean().item())
print(f"outer loss {sum(losses[:10]) / 10:.3f} -> {sum(losses[-10:]) / 10:.3f}, new tasks {sum(test) / 10:.3f}, rate {log_rate.exp().item():.3f}")
