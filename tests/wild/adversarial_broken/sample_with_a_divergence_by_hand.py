"""The divergence is written by hand, with the mean and the logarithm of the variance, and the sample has no gradient."""

import torch

torch.manual_seed(0)
points = torch.randn(300, 2) @ torch.randn(2, 9)
encode = torch.nn.Sequential(torch.nn.Linear(9, 24), torch.nn.Tanh())
to_mean, to_log_var = torch.nn.Linear(24, 3), torch.nn.Linear(24, 3)
decode = torch.nn.Sequential(torch.nn.Linear(3, 24), torch.nn.Tanh(), torch.nn.Linear(24, 9))
parts = torch.nn.ModuleList([encode, to_mean, to_log_var, decode])
optimizer = torch.optim.AdamW(parts.parameters(), lr=2e-3)

for _ in range(60):
    batch = points[torch.randint(300, (50,))]
    hidden = encode(batch)
    mean, log_var = to_mean(hidden), to_log_var(hidden)
    latent = torch.distributions.Normal(mean, (0.5 * log_var).exp()).sample()  # error: sample-without-gradient
    difference = (decode(latent) - batch).pow(2).mean()
    divergence = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).mean()
    optimizer.zero_grad()
    (difference + 0.1 * divergence).backward()
    optimizer.step()
