"""Healthy: rewards of several answers to each prompt, minus a learned baseline: (N, K) and (N, 1) on purpose."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
N, K = 12, 4
pol = nn.Linear(6, 5)
base = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam([*pol.parameters(), *base.parameters()], 1e-2)
w = torch.randn(6, 5)
with torch.no_grad():
    print("at start", base(torch.randn(K, 6)).flatten())
for step in range(100):
    x = torch.randn(N, 6)
    d = torch.distributions.Categorical(logits=pol(x))
    a = d.sample((K,)).t()
    r = ((x @ w).argmax(1)[:, None] == a).float()
    lp = d.logits.log_softmax(1).gather(1, a)
    b = base(x)
    adv = r - b
    loss = -(lp * adv.detach()).mean() + adv.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 25 == 24:
        with torch.no_grad():
            print(base(torch.randn(K, 6)).flatten().tolist(), r.mean().item())
