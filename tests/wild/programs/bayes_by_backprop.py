"""Healthy: Bayes by Backprop: weights sampled in every forward, KL divided over the batches, several samples added up in one loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_wine

torch.manual_seed(42)
torch.set_num_threads(1)


class Gaussian(object):
    def __init__(self, mu, rho):
        self.mu, self.rho, self.normal = mu, rho, torch.distributions.Normal(0, 1)

    @property
    def sigma(self):
        return torch.log1p(torch.exp(self.rho))

    def sample(self):
        return self.mu + self.sigma * self.normal.sample(self.rho.size())

    def log_prob(self, input):
        return (-math.log(math.sqrt(2 * math.pi)) - torch.log(self.sigma) - ((input - self.mu) ** 2) / (2 * self.sigma**2)).sum()


class ScaleMixtureGaussian(object):
    def __init__(self, pi, sigma1, sigma2):
        self.pi = pi
        self.gaussian1, self.gaussian2 = torch.distributions.Normal(0, sigma1), torch.distributions.Normal(0, sigma2)

    def log_prob(self, input):
        prob1, prob2 = torch.exp(self.gaussian1.log_prob(input)), torch.exp(self.gaussian2.log_prob(input))
        return torch.log(self.pi * prob1 + (1 - self.pi) * prob2).sum()


class BayesianLinear(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight_mu = nn.Parameter(torch.Tensor(out_features, in_features).uniform_(-0.2, 0.2))
        self.weight_rho = nn.Parameter(torch.Tensor(out_features, in_features).uniform_(-5, -4))
        self.weight = Gaussian(self.weight_mu, self.weight_rho)
        self.bias_mu = nn.Parameter(torch.Tensor(out_features).uniform_(-0.2, 0.2))
        self.bias_rho = nn.Parameter(torch.Tensor(out_features).uniform_(-5, -4))
        self.bias = Gaussian(self.bias_mu, self.bias_rho)
        self.prior = ScaleMixtureGaussian(0.5, 1.0, math.exp(-2))
        self.log_prior = self.log_variational_posterior = 0

    def forward(self, input, sample=False):
        if self.training or sample:
            weight, bias = self.weight.sample(), self.bias.sample()
            self.log_prior = self.prior.log_prob(weight) + self.prior.log_prob(bias)
            self.log_variational_posterior = self.weight.log_prob(weight) + self.bias.log_prob(bias)
        else:
            weight, bias = self.weight.mu, self.bias.mu
        return F.linear(input, weight, bias)


class BayesianNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = BayesianLinear(13, 16), BayesianLinear(16, 3)

    def forward(self, x, sample=False):
        return F.log_softmax(self.l2(F.relu(self.l1(x, sample)), sample), dim=1)

    def sample_elbo(self, input, target, num_batches, samples=2):
        log_priors = log_posteriors = negative_log_likelihood = 0
        for _ in range(samples):
            outputs = self(input, sample=True)
            log_priors = log_priors + (self.l1.log_prior + self.l2.log_prior) / samples
            log_posteriors = log_posteriors + (self.l1.log_variational_posterior + self.l2.log_variational_posterior) / samples
            negative_log_likelihood = negative_log_likelihood + F.nll_loss(outputs, target, reduction="sum") / samples
        return (log_posteriors - log_priors) / num_batches + negative_log_likelihood


wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
order = torch.randperm(178)
train, test = order[:128], order[128:]
x = (x - x[train].mean(0)) / x[train].std(0)
net = BayesianNetwork()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(25):
    net.train()
    for index in train[torch.randperm(128)].split(32):
        net.zero_grad()
        loss = net.sample_elbo(x[index], y[index], num_batches=4)
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    votes = torch.stack([net(x[test], sample=True) for _ in range(10)])
    print(f"loss {loss.item():.2f}, accuracy of the mean weights {(net(x[test]).argmax(1) == y[test]).float().mean():.3f}, "
          f"of ten networks {(votes.exp().mean(0).argmax(1) == y[test]).float().mean():.3f}")
