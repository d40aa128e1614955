import csv
import os
import torch

torch.manual_seed(4)
with open(os.path.join(os.environ['TRUESTEP_DATA'], 'jbrownlee', 'winequality-red.csv')) as f:
    table = torch.tensor([[float(v) for v in row] for row in csv.reader(f)])
table = table[torch.randperm(len(table))]
n_train = 1200
features, quality = table[:, :-1], table[:, -1:]
fm, fs = features[:n_train].mean(0), features[:n_train].std(0)
qm, qs = quality[:n_train].mean(), quality[:n_train].std()
X, T = (features - fm) / fs, (quality - qm) / qs


def init(n_in, n_hidden):
    return {
        'hidden/kernel': torch.nn.init.kaiming_normal_(torch.empty(n_hidden, n_in)).T.contiguous(),
        'hidden/bias': torch.zeros(n_hidden),
        'norm/scale': torch.ones(n_hidden),
        'norm/shift': torch.zeros(n_hidden),
        'out/kernel': torch.randn(n_hidden, 1) * 0.05,
        'out/bias': torch.zeros(1),
    }


def apply(p, x):
    h = x @ p['hidden/kernel'] + p['hidden/bias']
    h = (h - h.mean(1, keepdim=True)) / (h.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    h = torch.nn.functional.silu(h * p['norm/scale'] + p['norm/shift'])
    return h @ p['out/kernel'] + p['out/bias']


params = {k: v.requires_grad_() for k, v in init(11, 48).items()}
decayed = [v for k, v in params.items() if k.endswith('kernel')]
plain = [v for k, v in params.items() if not k.endswith('kernel')]
opt = torch.optim.AdamW([{'params': decayed, 'weight_decay': 0.1}, {'params': plain, 'weight_decay': 0.0}], lr=3e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=25)

for epoch in range(25):
    for rows in torch.randperm(n_train).split(60):
        loss = torch.nn.functional.mse_loss(apply(params, X[rows]), T[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    if epoch % 8 == 0 or epoch == 24:
        with torch.no_grad():
            pred = apply(params, X[n_train:]) * qs + qm
            mae = (pred - quality[n_train:]).abs().mean().item()
        print(f'epoch {epoch} lr {sched.get_last_lr()[0]:.5f} train mse {loss.item():.3f} test MAE {mae:.3f} points')
print(f'always the mean: {(quality[n_train:] - qm).abs().mean().item():.3f}')
