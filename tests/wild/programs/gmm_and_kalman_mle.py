"""Maximum likelihood with torch.distributions: a Gaussian mixture, then a local-level Kalman filter by LBFGS; constraints by transforms."""
import torch
from torch import distributions as D
from torch.distributions import constraints, transform_to

torch.manual_seed(1)
data = torch.cat([torch.randn(150) * 0.5 - 2, torch.randn(100) + 1.5, torch.randn(50) * 0.3 + 5])
free = {
    "weights": torch.zeros(3, requires_grad=True),
    "means": torch.tensor([-1.0, 0.0, 3.0], requires_grad=True),
    "scales": torch.zeros(3, requires_grad=True),
}
optimizer = torch.optim.Adam(free.values(), lr=0.05)
for it in range(150):
    mixture = D.MixtureSameFamily(
        D.Categorical(logits=free["weights"]), D.Normal(free["means"], transform_to(constraints.positive)(free["scales"]))
    )
    nll = -mixture.log_prob(data).mean()
    optimizer.zero_grad()
    nll.backward()
    optimizer.step()
    if it % 50 == 0:
        print("mixture", it, f"{nll.item():.4f}")
print("means", sorted(round(m, 2) for m in free["means"].tolist()))

level = torch.cumsum(0.3 * torch.randn(120, dtype=torch.float64), 0)
series = level + 0.8 * torch.randn(120, dtype=torch.float64)
log_q = torch.zeros((), dtype=torch.float64, requires_grad=True)
log_r = torch.zeros((), dtype=torch.float64, requires_grad=True)
lbfgs = torch.optim.LBFGS([log_q, log_r], max_iter=8, line_search_fn="strong_wolfe")


def likelihood():
    q, r = log_q.exp(), log_r.exp()
    m, v, total = series[0], r, 0.0
    for y in series[1:]:
        v = v + q
        total = total - D.Normal(m, (v + r).sqrt()).log_prob(y)
        k = v / (v + r)
        m, v = m + k * (y - m), (1 - k) * v
    return total / 119


def closure():
    lbfgs.zero_grad()
    loss = likelihood()
    loss.backward()
    return loss


for _ in range(3):
    print("kalman", round(lbfgs.step(closure).item(), 5))
print("noise", round(log_q.exp().sqrt().item(), 3), round(log_r.exp().sqrt().item(), 3))
