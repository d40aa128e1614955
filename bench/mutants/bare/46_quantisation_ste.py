"""Ternary weights with a straight-through estimator; evaluation uses the quantised weights as well."""
import torch
from sklearn.datasets import load_digits


def ternary(w):
    scale = w.abs().mean()
    q = torch.clamp(torch.round(w / scale), -1, 1) * scale
    return w + (q - w).detach()


def make_model(sizes, seed):
    g = torch.Generator().manual_seed(seed)
    kernels = [(torch.randn(a, b, generator=g) * (2 / a) ** 0.5).requires_grad_() for a, b in zip(sizes, sizes[1:])]
    biases = [torch.zeros(b, requires_grad=True) for b in sizes[1:]]

    def model(x, quantise=True):
        for i, (w, b) in enumerate(zip(kernels, biases)):
            x = x @ (ternary(w) if quantise else w) + b
            if i + 1 < len(kernels):
                x = x.relu()
        return x

    return model, kernels, biases


def batches(x, y, size, g):
    order = torch.randperm(len(x), generator=g)
    for i in range(0, len(order), size):
        yield x[order[i:i + size]], y[order[i:i + size]]


def main():
    d = load_digits()
    g = torch.Generator().manual_seed(0)
    order = torch.randperm(len(d.data), generator=g)
    x = (torch.tensor(d.data, dtype=torch.float32) / 16)[order]
    y = torch.tensor(d.target)[order]
    (xtr, xte), (ytr, yte) = x.split([1400, 397]), y.split([1400, 397])
    model, kernels, biases = make_model([64, 96, 96, 10], 1)
    opt = torch.optim.Adam(kernels + biases, lr=3e-3)
    for epoch in range(12):
        for xb, yb in batches(xtr, ytr, 70, g):
            loss = torch.nn.functional.cross_entropy(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for w in kernels:
                    w.clamp_(-1.5, 1.5)
        if epoch % 4 == 3:
            with torch.no_grad():
                q = (model(xte).argmax(1) == yte).float().mean().item()
            print(f'epoch {epoch + 1} loss {loss.item():.3f} ternary test accuracy {q:.3f}')
    print('distinct values', [ternary(w).detach().unique().numel() for w in kernels])


main()
