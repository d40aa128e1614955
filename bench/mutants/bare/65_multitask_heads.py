"""Shared trunk, two heads: digit class and ink amount; uncertainty weighting of the losses."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

torch.manual_seed(0)
data = load_digits()
images = torch.tensor(data.data, dtype=torch.float32) / 16
digit = torch.tensor(data.target)
column = images.reshape(-1, 8, 8).sum(1)
centre = (column * torch.arange(8.0)).sum(1) / column.sum(1)        # horizontal centre of mass
perm = torch.randperm(len(images))
tr, te = perm[:1300], perm[1300:]
c_mean, c_std = centre[tr].mean(), centre[tr].std()

trunk = {'w': (torch.randn(64, 48) * 0.17).requires_grad_(), 'b': torch.zeros(48, requires_grad=True)}
head_class = {'w': (torch.randn(48, 10) * 0.14).requires_grad_(), 'b': torch.zeros(10, requires_grad=True)}
head_centre = {'w': (torch.randn(48, 1) * 0.14).requires_grad_(), 'b': torch.zeros(1, requires_grad=True)}
log_var = torch.zeros(2, requires_grad=True)


def shared(x):
    return F.relu(x @ trunk['w'] + trunk['b'])


def outputs(x):
    h = shared(x)
    return h @ head_class['w'] + head_class['b'], (h @ head_centre['w'] + head_centre['b']).squeeze(1)


opt = torch.optim.Adam([
    {'params': list(trunk.values()), 'lr': 2e-3},
    {'params': list(head_class.values()) + list(head_centre.values()), 'lr': 4e-3},
    {'params': [log_var], 'lr': 1e-2},
])
for epoch in range(14):
    for rows in tr[torch.randperm(len(tr))].split(50):
        logits, pos = outputs(images[rows])
        l_class = F.cross_entropy(logits, digit[rows])
        l_centre = F.mse_loss(pos, (centre[rows] - c_mean) / c_std)
        loss = l_class * torch.exp(-log_var[0]) + l_centre * torch.exp(-log_var[1]) + 0.5 * log_var.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 4 == 1:
        with torch.no_grad():
            logits, pos = outputs(images[te])
            acc = (logits.argmax(1) == digit[te]).float().mean().item()
            err = (pos * c_std + c_mean - centre[te]).abs().mean().item()
        print(f'epoch {epoch} losses {l_class.item():.3f} {l_centre.item():.3f} test accuracy {acc:.3f} centre error {err:.3f} px')
