import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16
Y = torch.tensor(digits.target)
order = torch.randperm(len(X))
Xtr, Ytr, Xte, Yte = X[order[:1300]], Y[order[:1300]], X[order[1300:]], Y[order[1300:]]


def build(*sizes):
    ws = []
    for a, b in zip(sizes, sizes[1:]):
        ws.append([torch.randn(a, b).mul_((2 / a) ** 0.5).requires_grad_(), torch.zeros(b, requires_grad=True)])

    def apply(x):
        for w, b in ws[:-1]:
            x = F.relu(x @ w + b)
        return x @ ws[-1][0] + ws[-1][1]

    return apply, [t for pair in ws for t in pair]


model, params = build(64, 64, 10)
opt = torch.optim.Adam(params, lr=3e-3)
for epoch in range(12):
    for idx in torch.randperm(len(Xtr)).split(65):
        opt.zero_grad()
        F.cross_entropy(model(Xtr[idx]), Ytr[idx]).backward()
        opt.step()


def fgsm(x, y, eps):
    x = x.clone().requires_grad_()
    g, = torch.autograd.grad(F.cross_entropy(model(x), y), x)
    return (x + eps * g.sign()).clamp(0, 1).detach()


def pgd(x, y, eps, steps=10):
    adv = x + torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        adv.requires_grad_()
        g, = torch.autograd.grad(F.cross_entropy(model(adv), y), adv)
        with torch.no_grad():
            adv = adv + eps / 4 * g.sign()
            adv = torch.min(torch.max(adv, x - eps), x + eps).clamp(0, 1)
    return adv.detach()


def accuracy(x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


print(f'clean {accuracy(Xte, Yte):.3f}')
for eps in (0.05, 0.1, 0.2):
    print(f'eps {eps}: fgsm {accuracy(fgsm(Xte, Yte, eps), Yte):.3f} pgd {accuracy(pgd(Xte, Yte, eps), Yte):.3f}')
