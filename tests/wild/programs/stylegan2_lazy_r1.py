"""Healthy: StyleGAN2 training: logistic loss, R1 penalty every k-th step through create_graph, path length penalty, mapping averaged."""
import copy
import math

import torch
from torch import autograd, nn, optim
from torch.nn import functional as F


class EqualLinear(nn.Module):
    def __init__(self, i, o, lr_mul=1.0, activation=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i).div_(lr_mul))
        self.bias = nn.Parameter(torch.zeros(o))
        self.scale, self.lr_mul, self.activation = lr_mul / math.sqrt(i), lr_mul, activation

    def forward(self, x):
        out = F.linear(x, self.weight * self.scale, self.bias * self.lr_mul)
        return F.leaky_relu(out, 0.2) * 2**0.5 if self.activation else out


class Generator(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.style = nn.Sequential(EqualLinear(dim, 16, 0.5, True), EqualLinear(16, 16, 0.5, True))
        self.constant = nn.Parameter(torch.randn(1, 16))
        self.modulate, self.layer, self.out = EqualLinear(16, 16), EqualLinear(16, 32, activation=True), EqualLinear(32, 2)
        self.noise_strength = nn.Parameter(torch.zeros(1))

    def forward(self, z, return_latents=False):
        w = self.style(z)
        h = self.layer(self.constant * (1 + self.modulate(w)))
        image = self.out(h + self.noise_strength * torch.randn_like(h))
        return (image, w) if return_latents else image


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def accumulate(model1, model2, decay=0.9):
    par1, par2 = dict(model1.named_parameters()), dict(model2.named_parameters())
    for k in par1:
        par1[k].data.mul_(decay).add_(par2[k].data, alpha=1 - decay)


def d_logistic_loss(real_pred, fake_pred):
    return F.softplus(-real_pred).mean() + F.softplus(fake_pred).mean()


def d_r1_loss(real_pred, real_img):
    (grad_real,) = autograd.grad(outputs=real_pred.sum(), inputs=real_img, create_graph=True)
    return grad_real.pow(2).reshape(grad_real.shape[0], -1).sum(1).mean()


def g_path_regularize(fake_img, latents, mean_path_length, decay=0.01):
    noise = torch.randn_like(fake_img) / math.sqrt(2)
    (grad,) = autograd.grad(outputs=(fake_img * noise).sum(), inputs=latents, create_graph=True)
    path_lengths = torch.sqrt(grad.pow(2).sum(1))
    path_mean = mean_path_length + decay * (path_lengths.mean() - mean_path_length)
    return (path_lengths - path_mean).pow(2).mean(), path_mean.detach()


torch.manual_seed(0)
torch.set_num_threads(1)
generator = Generator()
discriminator = nn.Sequential(EqualLinear(2, 32, activation=True), EqualLinear(32, 32, activation=True), EqualLinear(32, 1))
g_ema = copy.deepcopy(generator).eval()
accumulate(g_ema, generator, 0)
d_every, g_every, batch = 16, 4, 32
g_reg_ratio, d_reg_ratio = g_every / (g_every + 1), d_every / (d_every + 1)
g_optim = optim.Adam(generator.parameters(), lr=2e-3 * g_reg_ratio, betas=(0 ** g_reg_ratio, 0.99 ** g_reg_ratio))
d_optim = optim.Adam(discriminator.parameters(), lr=2e-3 * d_reg_ratio, betas=(0 ** d_reg_ratio, 0.99 ** d_reg_ratio))
mean_path_length, r1_loss, path_loss = 0, torch.tensor(0.0), torch.tensor(0.0)
for i in range(96):
    theta = 6.283 * torch.rand(batch)
    real_img = torch.stack([theta.cos(), theta.sin()], 1)
    requires_grad(generator, False)
    requires_grad(discriminator, True)
    d_loss = d_logistic_loss(discriminator(real_img), discriminator(generator(torch.randn(batch, 8))))
    discriminator.zero_grad()
    d_loss.backward()
    d_optim.step()
    if i % d_every == 0:
        real_img.requires_grad = True
        real_pred = discriminator(real_img)
        r1_loss = d_r1_loss(real_pred, real_img)
        discriminator.zero_grad()
        (0.5 * r1_loss * d_every + 0 * real_pred[0]).sum().backward()
        d_optim.step()

    requires_grad(generator, True)
    requires_grad(discriminator, False)
    g_loss = F.softplus(-discriminator(generator(torch.randn(batch, 8)))).mean()
    generator.zero_grad()
    g_loss.backward()
    g_optim.step()
    if i % g_every == 0:
        fake_img, latents = generator(torch.randn(batch // 2, 8), return_latents=True)
        path_loss, mean_path_length = g_path_regularize(fake_img, latents, mean_path_length)
        generator.zero_grad()
        (2 * g_every * path_loss + 0 * fake_img[0, 0]).backward()
        g_optim.step()
    accumulate(g_ema, generator)
with torch.no_grad():
    radius = g_ema(torch.randn(256, 8)).norm(dim=1)
print(f"d {d_loss.item():.3f} g {g_loss.item():.3f} r1 {r1_loss.item():.3f} path {path_loss.item():.3f} radius {radius.mean():.2f}")
