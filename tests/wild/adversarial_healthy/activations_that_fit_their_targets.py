"""Outputs behind activations that reach their targets: counts, actions, smoothed GAN labels, clipped pointers, a margin."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
body = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
counts, actions, scores, pointer = nn.Linear(32, 1), nn.Linear(32, 2), nn.Linear(32, 1), nn.Linear(32, 5)
modules = nn.ModuleList([body, counts, actions, scores, pointer])
optimizer = torch.optim.Adam(modules.parameters(), lr=1e-3)
for step in range(60):
    x = torch.randn(32, 6)
    hidden = body(x)
    number = torch.poisson(x[:, :1].exp()) + 0.05 * torch.randn(32, 1)  # counts, read by a noisy meter
    action = (x[:, 1:3] * 1.2).clamp(-1.1, 1.1)  # a little past the end of tanh
    real = 0.7 + 0.5 * torch.rand(32, 1)  # soft labels of a least squares GAN
    loss = F.mse_loss(F.relu(counts(hidden)), number) + F.l1_loss(torch.tanh(actions(hidden)), action)
    loss = loss + F.mse_loss(torch.sigmoid(scores(hidden)), real)
    loss = loss + F.cross_entropy(10 * torch.tanh(pointer(hidden)), x[:, :5].argmax(1))
    loss = loss + F.l1_loss(F.relu(0.1 + scores(hidden)), torch.zeros(32, 1))
    gaps = torch.where(torch.rand(32, 1) < 0.4, torch.tensor(-99.0), number)  # unknown numbers, masked below
    loss = loss + F.mse_loss(F.relu(counts(hidden)), gaps, reduction="none")[gaps > -99].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
