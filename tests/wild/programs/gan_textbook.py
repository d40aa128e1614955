"""Healthy: textbook GAN where each optimizer clears first; G's backward leaves gradients in D that D never steps on."""
import torch
import torch.nn as nn

torch.manual_seed(42)
torch.set_num_threads(1)

latent = 8
G = nn.Sequential(nn.Linear(latent, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_opt = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.9))
bce = nn.BCEWithLogitsLoss()


def real_batch(n):
    theta = torch.rand(n) * 2 * torch.pi
    return torch.stack([theta.cos(), theta.sin()], 1) + 0.05 * torch.randn(n, 2)


batch = 64
ones, zeros = torch.ones(batch, 1), torch.zeros(batch, 1)

for step in range(150):
    # ---- generator
    g_opt.zero_grad()
    fake = G(torch.randn(batch, latent))
    g_loss = bce(D(fake), ones)
    g_loss.backward()
    g_opt.step()

    # ---- discriminator
    d_opt.zero_grad()
    d_loss = (bce(D(real_batch(batch)), ones) + bce(D(fake.detach()), zeros)) / 2
    d_loss.backward()
    d_opt.step()

    if step % 50 == 0:
        print(f"{step:4d}  D {d_loss.item():.3f}  G {g_loss.item():.3f}")

with torch.no_grad():
    radius = G(torch.randn(500, latent)).norm(dim=1)
print(f"mean radius {radius.mean():.3f} (data: 1.0)")
