"""Healthy: linear probe: the encoder stays trainable on paper, features come from no_grad, the optimizer holds the head only."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(9)
torch.set_num_threads(1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(20, 64)
        self.norm = nn.LayerNorm(64)
        self.l2 = nn.Linear(64, 32)

    def forward(self, x):
        return self.l2(F.gelu(self.norm(self.l1(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 20))

    def forward(self, z):
        return self.net(z)


basis = torch.randn(5, 20)
means = 1.5 * torch.randn(6, 5)


def sample(n):
    y = torch.randint(0, 6, (n,))
    return (means[y] + 0.5 * torch.randn(n, 5)) @ basis / 3 + 0.1 * torch.randn(n, 20), y


# stage 1: self-supervised, denoising
encoder, decoder = Encoder(), Decoder()
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
for step in range(60):
    x, _ = sample(64)
    loss = F.mse_loss(decoder(encoder(x + 0.3 * torch.randn_like(x))), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("denoising loss", round(loss.item(), 4))

# stage 2: linear probe on top of the encoder
encoder.eval()
probe = nn.Linear(32, 6)
probe_opt = torch.optim.SGD(probe.parameters(), lr=0.1, momentum=0.9)
for step in range(80):
    x, y = sample(64)
    with torch.no_grad():
        feats = encoder(x)
    probe_loss = F.cross_entropy(probe(feats), y)
    probe_opt.zero_grad()
    probe_loss.backward()
    probe_opt.step()

x, y = sample(600)
with torch.no_grad():
    acc = (probe(encoder(x)).argmax(1) == y).float().mean().item()
print("probe accuracy", round(acc, 4))
