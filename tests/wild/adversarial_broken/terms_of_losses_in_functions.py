"""A divergence that is read as a number, from a function that sums terms, and batches of the evaluation in training."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
images = torch.rand(480, 12)
fit_data = DataLoader(TensorDataset(images[:400]), batch_size=20, shuffle=True)
check_data = DataLoader(TensorDataset(images[400:]), batch_size=20)
encoder, decoder = nn.Linear(12, 6), nn.Linear(3, 12)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)


def terms(batch):
    mean, log_variance = encoder(batch).chunk(2, dim=1)
    code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
    rebuilt = (decoder(code) - batch).square().sum(1).mean()
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
    return rebuilt, divergence


for _ in range(20):
    for (batch,) in check_data:  # error: training-on-evaluation-data
        rebuilt, divergence = terms(batch)
        loss = rebuilt + divergence.item()  # error: term-without-gradient
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = sum(terms(batch)[0].item() for (batch,) in check_data)
print(error)
