"""Healthy: SAGAN's recipe: hinge loss, spectral norm, two time scales, a gated attention of weight zero, an averaged generator for samples."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class SelfAttention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.query, self.key = spectral_norm(nn.Conv1d(channels, 4, 1)), spectral_norm(nn.Conv1d(channels, 4, 1))
        self.value = spectral_norm(nn.Conv1d(channels, channels, 1))
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        attention = torch.softmax(self.query(x).transpose(1, 2) @ self.key(x), dim=-1)
        return self.gamma * (self.value(x) @ attention.transpose(1, 2)) + x


class Generator(nn.Module):
    def __init__(self, z=8):
        super().__init__()
        self.fc = nn.Linear(z, 16 * 4)
        self.up = nn.Sequential(nn.BatchNorm1d(16), nn.ReLU(), spectral_norm(nn.ConvTranspose1d(16, 16, 4, 2, 1)))
        self.attention, self.out = SelfAttention(16), nn.Conv1d(16, 1, 3, padding=1)

    def forward(self, z):
        return torch.tanh(self.out(F.relu(self.attention(self.up(self.fc(z).view(-1, 16, 4))))))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = spectral_norm(nn.Conv1d(1, 16, 4, 2, 1)), spectral_norm(nn.Conv1d(16, 32, 4, 2, 1))
        self.attention, self.fc = SelfAttention(32), spectral_norm(nn.Linear(32, 1))

    def forward(self, x):
        x = F.leaky_relu(self.conv1(x), 0.1)
        x = self.attention(F.leaky_relu(self.conv2(x), 0.1))
        return self.fc(x.sum(-1))


torch.manual_seed(0)
torch.set_num_threads(1)
phase = torch.arange(8) * torch.pi / 4


def real_batch(n=32):
    return 0.8 * torch.sin(phase + 6.283 * torch.rand(n, 1)).unsqueeze(1)


G, D = Generator(), Discriminator()
ema = AveragedModel(G, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
opt_d = torch.optim.Adam(filter(lambda p: p.requires_grad, D.parameters()), lr=4e-3, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(filter(lambda p: p.requires_grad, G.parameters()), lr=1e-3, betas=(0.0, 0.9))
for step in range(100):
    D.train()
    G.train()
    d_out_real = D(real_batch())
    d_out_fake = D(G(torch.randn(32, 8)).detach())
    d_loss = F.relu(1.0 - d_out_real).mean() + F.relu(1.0 + d_out_fake).mean()
    opt_d.zero_grad()
    opt_g.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = -D(G(torch.randn(32, 8))).mean()
    opt_d.zero_grad()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    ema.update_parameters(G)

    if (step + 1) % 50 == 0:
        ema.eval()
        with torch.no_grad():
            fakes = ema(torch.randn(64, 8))
        print(f"step {step + 1}: d {d_loss.item():.3f} g {g_loss.item():.3f} std of samples {fakes.std():.3f}")
