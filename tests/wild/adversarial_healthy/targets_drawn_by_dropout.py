"""Targets of functions with dropout on purpose: a teacher that is an average, a second pass, and a draw that acts."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(240, 8)
y = (x[:, 0] > 0).long()


def make():
    return [(torch.randn(8, 32) * 0.3).requires_grad_(), torch.zeros(32, requires_grad=True), (torch.randn(32, 2) * 0.2).requires_grad_()]


def student(w, x):
    return F.dropout(torch.relu(x @ w[0] + w[1]), 0.3) @ w[2]


def network(w, x):
    return F.dropout(torch.relu(x @ w[0] + w[1]), 0.2) @ w[2]


def values(w, x):
    return F.dropout(torch.relu(x @ w[0] + w[1]), 0.1) @ w[2]


def clean(w, x):
    return torch.relu(x @ w[0] + w[1]) @ w[2]


def thompson(w, x):
    """One network is drawn by dropout, and acts."""
    return values(w, x).argmax(1)


w = make()
average = [p.detach().clone() for p in w]
opt = torch.optim.Adam(w, 1e-2)
for step in range(40):
    rows = torch.randint(200, (32,))
    with torch.no_grad():
        wanted = student(average, x[rows]).softmax(1)
    out = student(w, x[rows])
    loss = F.cross_entropy(out, y[rows]) + (out.softmax(1) - wanted).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average, w):
            slow.lerp_(fast, 0.05)
with torch.no_grad():
    print((clean(average, x[200:]).argmax(1) == y[200:]).float().mean().item())

w = make()
opt = torch.optim.Adam(w, 1e-2)
for step in range(40):
    rows = torch.randint(200, (32,))
    out = network(w, x[rows])
    with torch.no_grad():
        target = network(w, x[rows]).softmax(1)
    loss = F.cross_entropy(out, y[rows]) + F.mse_loss(out.softmax(1), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    print((clean(w, x[200:]).argmax(1) == y[200:]).float().mean().item())

w = make()
opt = torch.optim.Adam(w, 1e-2)
for step in range(40):
    rows = torch.randint(240, (32,))
    with torch.no_grad():
        action = thompson(w, x[rows])
    reward = (action == y[rows]).float()
    loss = F.mse_loss(values(w, x[rows]).gather(1, action[:, None])[:, 0], reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(reward.mean().item())
