"""A GAN with a discriminator that ends in Sigmoid, written for BCELoss, and trained with the logits version."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid())
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)


def bce(scores, value):
    scores = scores.view(-1)
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, value))  # error: sigmoid-before-bce-with-logits


for step in range(30):
    real = torch.randn(32, 2) + 2
    fake = G(torch.randn(32, 4))
    opt_d.zero_grad()
    loss_d = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = bce(D(fake), 1.0)
    loss_g.backward()
    opt_g.step()
print(loss_d.item(), loss_g.item())
