# %% [markdown]
"""Healthy: mixture density network in notebook cells: softmax for the mixture weights, logsumexp of log-probabilities as the loss."""
# ## Mixture density networks
# The inverse problem has several answers for one input, so we predict a distribution.

# %%
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(1)
np.random.seed(1)
torch.set_num_threads(1)

# %%
n_samples = 600
epsilon = torch.randn(n_samples)
x_data = torch.linspace(-10, 10, n_samples)
y_data = 7 * torch.sin(0.75 * x_data) + 0.5 * x_data + epsilon
y_data, x_data = x_data.view(-1, 1) / 10, y_data.view(-1, 1) / 10  # swapped!
x_data.shape, y_data.shape

# %%
class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super().__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        pi = nn.functional.softmax(self.z_pi(z_h), -1)
        return pi, self.z_mu(z_h), torch.exp(self.z_sigma(z_h))


def mdn_loss_fn(y, mu, sigma, pi):
    m = torch.distributions.Normal(loc=mu, scale=sigma)
    return -torch.logsumexp(m.log_prob(y) + torch.log(pi), dim=1).mean()

# %%
model = MDN(n_hidden=20, n_gaussians=5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []

for epoch in range(400):
    pi, mu, sigma = model(x_data)
    loss = mdn_loss_fn(y_data, mu, sigma, pi)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if epoch % 100 == 0:
        print(epoch, loss.data.tolist())

# %%
pi, mu, sigma = model(torch.zeros(1, 1))
k = torch.multinomial(pi, 200, replacement=True).view(-1)
samples = torch.normal(mu, sigma)[0][k].data.numpy()
print("loss", losses[-1], "answers at x=0 lie between", samples.min().round(2), "and", samples.max().round(2))
