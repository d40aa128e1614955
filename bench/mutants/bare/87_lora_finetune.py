"""Pretrain on digits 0-4, freeze, then fine-tune rank-2 additions (B = 0 at the start) and a new head on 5-9."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
D = load_digits()
X, Y = torch.tensor(D.data, dtype=torch.float32) / 16, torch.tensor(D.target)
perm = torch.randperm(len(X))
X, Y = X[perm], Y[perm]
low = Y < 5
pre_x, pre_y = X[low], Y[low]
new_x, new_y = X[~low], Y[~low] - 5
new_train, new_test = slice(0, 250), slice(250, None)

base = {'w1': torch.randn(64, 64) * 0.17, 'b1': torch.zeros(64), 'w2': torch.randn(64, 64) * 0.17, 'b2': torch.zeros(64)}
head = {'w': torch.randn(64, 5) * 0.1, 'b': torch.zeros(5)}


def body(p, x, lora=None):
    w1, w2 = p['w1'], p['w2']
    if lora is not None:
        w1 = w1 + lora['A1'] @ lora['B1']
        w2 = w2 + lora['A2'] @ lora['B2']
    return F.relu(F.relu(x @ w1 + p['b1']) @ w2 + p['b2'])


def train(params, forward, x, y, epochs, lr):
    params = [p.requires_grad_() for p in params]
    opt = torch.optim.Adam(params, lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(forward(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    return loss.item()


last = train([*base.values(), *head.values()], lambda x: body(base, x) @ head['w'] + head['b'], pre_x, pre_y, 6, 3e-3)
print(f'pretraining loss {last:.4f}')

for p in base.values():
    p.requires_grad_(False)
frozen_copy = {k: v.clone() for k, v in base.items()}
lora = {'A1': torch.randn(64, 2) * 0.1, 'B1': torch.zeros(2, 64), 'A2': torch.randn(64, 2) * 0.1, 'B2': torch.zeros(2, 64)}
new_head = {'w': torch.randn(64, 5) * 0.1, 'b': torch.zeros(5)}


def tuned(x):
    return body(base, x, lora) @ new_head['w'] + new_head['b']


last = train([*lora.values(), *new_head.values()], tuned, new_x[new_train], new_y[new_train], 25, 3e-3)
with torch.no_grad():
    acc = (tuned(new_x[new_test]).argmax(1) == new_y[new_test]).float().mean().item()
print(f'fine-tuning loss {last:.4f} test accuracy {acc:.3f}')
print('base untouched:', all(torch.equal(base[k], frozen_copy[k]) for k in base))
