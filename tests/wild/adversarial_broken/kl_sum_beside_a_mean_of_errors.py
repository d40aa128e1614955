"""A convolution-free autoencoder with torch.distributions: mean of the squared errors, sum of the KL divergence."""
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence


class Encoder(nn.Module):
    def __init__(self, size, latent):
        super().__init__()
        self.body, self.loc, self.raw = nn.Linear(size, 48), nn.Linear(48, latent), nn.Linear(48, latent)

    def forward(self, x):
        h = torch.tanh(self.body(x))
        return Normal(self.loc(h), nn.functional.softplus(self.raw(h)) + 1e-3)


torch.manual_seed(0)
data = torch.randn(800, 3) @ torch.randn(3, 40) + 0.1 * torch.randn(800, 40)
train, held = data[:650], data[650:]
encoder = Encoder(40, 5)
decoder = nn.Sequential(nn.Linear(5, 48), nn.Tanh(), nn.Linear(48, 40))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
prior = Normal(torch.zeros(5), torch.ones(5))
for epoch in range(18):
    for x in train[torch.randperm(len(train))].split(50):
        posterior = encoder(x)
        error = ((decoder(posterior.rsample()) - x) ** 2).mean()
        loss = error + kl_divergence(posterior, prior).sum()
        optimizer.zero_grad()
        loss.backward()  # error: kl-outweighs-reconstruction
        optimizer.step()
with torch.no_grad():
    print(((decoder(encoder(held).sample()) - held) ** 2).mean().item(), held.var().item())
