"""Curriculum: early epochs see the short sequences first, in order, ON PURPOSE; later epochs are shuffled."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
MAX = 12


def make(n):
    length = torch.randint(2, MAX + 1, (n,))
    x = torch.randint(0, 2, (n, MAX))
    mask = torch.arange(MAX) < length[:, None]
    x = torch.where(mask, x, torch.full_like(x, 2))          # 2 is padding
    y = ((x == 1).sum(1) > (x == 0).sum(1)).long()
    return x, length, y


x, length, y = make(2000)
x_test, _, y_test = make(600)

emb = (torch.randn(3, 8) * 0.5).requires_grad_()
wx = (torch.randn(8, 24) * 0.3).requires_grad_()
wh = (torch.eye(24) * 0.95).requires_grad_()
out = (torch.randn(24, 2) * 0.2).requires_grad_()
weights = [emb, wx, wh, out]


def classify(tokens):
    h = torch.zeros(len(tokens), 24)
    for t in range(MAX):
        new = torch.tanh(emb[tokens[:, t]] @ wx + h @ wh)
        keep = (tokens[:, t] == 2)[:, None]
        h = torch.where(keep, h, new)
    return h @ out


opt = torch.optim.Adam(weights, lr=4e-3)
easy_first = length.argsort(stable=True)
for epoch in range(6):
    order = easy_first if epoch < 2 else torch.randperm(len(x))
    total = 0.0
    for idx in order.split(50):
        loss = F.cross_entropy(classify(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        opt.step()
        total += loss.item() * len(idx)
    with torch.no_grad():
        acc = (classify(x_test).argmax(1) == y_test).float().mean().item()
    print(f'epoch {epoch} {"curriculum" if epoch < 2 else "shuffled"} loss {total / len(x):.4f} test {acc:.3f}')
