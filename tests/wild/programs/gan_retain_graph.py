"""Healthy: one generator forward shared by both updates: retain_graph on D's backward, the graph is used again for G."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Gen(nn.Module):
    def __init__(self, z_dim=6, out=4):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z_dim, 32), nn.LeakyReLU(0.2), nn.Linear(32, out))

    def forward(self, z):
        return self.net(z)


class Disc(nn.Module):
    def __init__(self, inp=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inp, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2))
        self.score = nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return self.score(h), h


def data(n):
    mix = torch.tensor([[1.0, 0.5, 0.0, 0.2], [0.0, 1.0, -0.5, 0.3]])
    return torch.randn(n, 2) @ mix + torch.tensor([0.5, -0.5, 0.0, 0.2])


def main(iters=120, bs=64):
    torch.manual_seed(11)
    torch.set_num_threads(1)
    gen, disc = Gen(), Disc()
    opt_g = torch.optim.Adam(gen.parameters(), lr=5e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(disc.parameters(), lr=5e-4, betas=(0.5, 0.99))
    fixed_z = torch.randn(512, 6)
    with torch.no_grad():
        before = (gen(fixed_z).mean(0) - data(4096).mean(0)).norm().item()

    for it in range(iters):
        fake = gen(torch.randn(bs, 6))
        real_score, real_feat = disc(data(bs))
        fake_score, _ = disc(fake)

        # D: hinge loss; the fakes are not detached, so gen's graph is kept for the second backward below
        d_loss = F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()
        opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        opt_d.step()

        # G: adversarial score of the updated D plus feature matching, on the same fakes
        fake_score, fake_feat = disc(fake)
        g_loss = -fake_score.mean() + F.l1_loss(fake_feat.mean(0), real_feat.detach().mean(0))
        opt_g.zero_grad()  # gradients that d_loss left in gen
        g_loss.backward()
        opt_g.step()

    with torch.no_grad():
        after = (gen(fixed_z).mean(0) - data(4096).mean(0)).norm().item()
    print(f"distance of means: {before:.3f} -> {after:.3f}")


main()
