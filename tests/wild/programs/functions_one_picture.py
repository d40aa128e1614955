"""A coordinate network fitted to ONE picture; half of its pixels train, the other half are the test."""
import math
import torch
from sklearn.datasets import load_sample_image

torch.manual_seed(0)
img = torch.tensor(load_sample_image('flower.jpg').copy()).float().mean(2) / 127.5 - 1
img = torch.nn.functional.interpolate(img[None, None], size=(40, 60), mode='area')[0, 0]
rows, cols = torch.meshgrid(torch.linspace(-1, 1, 40), torch.linspace(-1, 1, 60), indexing='ij')
coords = torch.stack([rows, cols], -1).reshape(-1, 2)
pixels = img.reshape(-1, 1)
perm = torch.randperm(len(coords))
train, test = perm[:1200], perm[1200:]

OMEGA = 12.0


def siren_init(n_in, n_out, first=False):
    bound = 1 / n_in if first else math.sqrt(6 / n_in) / OMEGA
    return (torch.empty(n_in, n_out).uniform_(-bound, bound).requires_grad_(),
            torch.empty(n_out).uniform_(-bound, bound).requires_grad_())


layers = [siren_init(2, 64, True), siren_init(64, 64), siren_init(64, 1)]


def render(xy):
    for w, b in layers[:-1]:
        xy = torch.sin(OMEGA * (xy @ w + b))
    w, b = layers[-1]
    return xy @ w + b


opt = torch.optim.Adam([t for l in layers for t in l], lr=2e-3)
for step in range(251):
    loss = (render(coords[train]) - pixels[train]).square().mean()      # all the training pixels at once
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        with torch.no_grad():
            test_mse = (render(coords[test]) - pixels[test]).square().mean().item()
            whole = (render(coords) - pixels).square().mean().item()
        print(f'step {step} train {loss.item():.4f} unseen pixels {test_mse:.4f} whole picture psnr {10 * math.log10(4 / whole):.2f}')
