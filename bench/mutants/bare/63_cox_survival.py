import torch

torch.manual_seed(0)
n, d = 900, 8
X = torch.randn(n, d)
beta = torch.tensor([1.0, -0.8, 0.5, 0, 0, 0, 0, 0])
risk = X @ beta + 0.5 * torch.relu(X[:, 0] * X[:, 3])
event_time = torch.distributions.Exponential(torch.exp(risk)).sample()
censor_time = torch.distributions.Exponential(torch.full((n,), 0.5)).sample()
time = torch.minimum(event_time, censor_time)
event = (event_time <= censor_time).float()
print(f'events {event.mean().item():.2f}')
fit, held = slice(0, 600), slice(600, None)


def init(sizes):
    return [(torch.randn(a, b) * a ** -0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]


net = init([d, 24, 1])


def hazard(x):
    return (torch.tanh(x @ net[0]) @ net[1]).squeeze(1)


def partial_likelihood(h, t, e):
    """Negative Cox log partial likelihood: rows sorted by falling time, risk sets by a running logsumexp."""
    order = t.argsort(descending=True)
    h, e = h[order], e[order]
    return -((h - torch.logcumsumexp(h, 0)) * e).sum() / e.sum()


@torch.no_grad()
def concordance(part):
    h, t, e = hazard(X[part]), time[part], event[part]
    comparable = (t[:, None] < t[None]) & (e[:, None] == 1)
    better = (h[:, None] > h[None]).float() + 0.5 * (h[:, None] == h[None]).float()
    return better[comparable].mean().item()


opt = torch.optim.AdamW(net, lr=5e-3, weight_decay=1e-2)
print(f'start: held-out concordance {concordance(held):.3f}')
for epoch in range(1, 121):
    opt.zero_grad()
    loss = partial_likelihood(hazard(X[fit]), time[fit], event[fit])
    loss.backward()
    opt.step()
    if epoch % 40 == 0:
        print(f'epoch {epoch} loss {loss.item():.4f} fit {concordance(fit):.3f} held-out {concordance(held):.3f}')
