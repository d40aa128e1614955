"""SimCLR-like: two noisy views of the same row, NT-Xent; then a linear probe on frozen features."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
raw = load_digits()
X = torch.tensor(raw.images, dtype=torch.float32)[:, None] / 16
Y = torch.tensor(raw.target)
perm = torch.randperm(len(X))
Xtr, Ytr, Xte, Yte = X[perm[:1400]], Y[perm[:1400]], X[perm[1400:]], Y[perm[1400:]]

enc = [torch.randn(64, 96) * 0.17, torch.zeros(96), torch.randn(96, 48) * 0.14, torch.zeros(48)]
proj = [torch.randn(48, 24) * 0.2]
for t in enc + proj:
    t.requires_grad_()


def encode(img):
    h = F.relu(img.flatten(1) @ enc[0] + enc[1])
    return F.relu(h @ enc[2] + enc[3])


def augment(img):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    img = torch.roll(img, (dy, dx), (2, 3))
    img = img + 0.1 * torch.randn_like(img)
    return img * (torch.rand(len(img), 1, 8, 8) > 0.15)


def nt_xent(a, b, tau=0.3):
    z = F.normalize(torch.cat([a, b]) @ proj[0], dim=1)
    sim = z @ z.T / tau
    sim.fill_diagonal_(float('-inf'))
    n = len(a)
    positive = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, positive)


opt = torch.optim.Adam(enc + proj, lr=2e-3)
for epoch in range(12):
    total = 0.0
    for idx in torch.randperm(1400).split(200):
        loss = nt_xent(encode(augment(Xtr[idx])), encode(augment(Xtr[idx])))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 7
    if epoch % 4 == 3:
        print(f'epoch {epoch + 1} nt-xent {total:.3f}')

with torch.no_grad():
    ftr, fte = encode(Xtr), encode(Xte)
mu, sd = ftr.mean(0), ftr.std(0) + 1e-6
ftr, fte = (ftr - mu) / sd, (fte - mu) / sd
w, b = torch.zeros(48, 10, requires_grad=True), torch.zeros(10, requires_grad=True)
probe = torch.optim.SGD([w, b], lr=0.5)
for _ in range(80):
    probe.zero_grad()
    probe_loss = F.cross_entropy(ftr @ w + b, Ytr)
    probe_loss.backward()
    probe.step()
with torch.no_grad():
    print(f'probe loss {probe_loss.item():.3f} test accuracy {((fte @ w + b).argmax(1) == Yte).float().mean().item():.3f}')
