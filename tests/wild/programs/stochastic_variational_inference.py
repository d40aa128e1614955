"""Healthy: black-box variational inference on a hierarchical model: no module, bare leaves, ELBO maximised (`maximize=True`), lr per site."""
import torch
from torch.distributions import HalfNormal, Independent, Normal, kl_divergence
from torch.optim.lr_scheduler import ExponentialLR

torch.manual_seed(0)
torch.set_num_threads(1)

# eight schools
effect = torch.tensor([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
error = torch.tensor([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

q = {
    "mu_loc": torch.zeros(()), "mu_scale": torch.zeros(()),
    "tau_loc": torch.tensor(1.0), "tau_scale": torch.tensor(-1.0),
    "z_loc": torch.zeros(8), "z_scale": torch.zeros(8),
}
for value in q.values():
    value.requires_grad_()
optimizer = torch.optim.Adam(
    [{"params": [q[n] for n in q if n.endswith("loc")], "lr": 0.05}, {"params": [q[n] for n in q if n.endswith("scale")], "lr": 0.02}],
    maximize=True)
scheduler = ExponentialLR(optimizer, gamma=0.995)


def elbo(particles=8):
    q_mu, q_tau = Normal(q["mu_loc"], q["mu_scale"].exp()), Normal(q["tau_loc"], q["tau_scale"].exp())
    q_z = Independent(Normal(q["z_loc"], q["z_scale"].exp()), 1)
    mu, log_tau, z = (d.rsample((particles,)) for d in (q_mu, q_tau, q_z))
    tau = log_tau.exp()
    theta = mu[:, None] + tau[:, None] * z
    log_likelihood = Normal(theta, error).log_prob(effect).sum(-1)
    log_prior_tau = HalfNormal(10.0).log_prob(tau) + log_tau  # with the Jacobian of exp
    kl = kl_divergence(q_mu, Normal(torch.zeros(()), 10.0)) + kl_divergence(q_z, Independent(Normal(torch.zeros(8), torch.ones(8)), 1))
    return (log_likelihood + log_prior_tau - q_tau.log_prob(log_tau)).mean() - kl


trace = []
for step in range(250):
    optimizer.zero_grad()
    objective = elbo()
    objective.backward()
    optimizer.step()
    scheduler.step()
    trace.append(objective.item())
with torch.no_grad():
    print(f"ELBO {sum(trace[:20]) / 20:.2f} -> {sum(trace[-20:]) / 20:.2f}, mean effect {q['mu_loc']:.1f} +- {q['mu_scale'].exp():.1f}, tau {q['tau_loc'].exp():.1f}")
