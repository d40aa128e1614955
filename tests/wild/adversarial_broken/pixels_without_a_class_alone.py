"""Pictures with pixels without a class: the loss takes these pixels, and leaves out all others."""

import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(5)
S, K, IGNORE = 16, 4, -1
def scene(n):
    img, lab = torch.randn(n, 1, S, S) * 0.3, torch.zeros(n, S, S, dtype=torch.long)
    for i in range(n):
        for c in range(1, K):
            y, x = (int(v) for v in torch.randint(0, 11, (2,)))
            lab[i, y:y + 5, x:x + 5] = c
            img[i, 0, y:y + 5, x:x + 5] += c
        u = int(torch.randint(0, 10, (1,)))
        lab[i, u:u + 4, :] = IGNORE
    return img, lab
net = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, K, 3, padding=1))
img, lab = scene(200)
opt = torch.optim.Adam(net.parameters(), 4e-3)
def criterion(logits, target):
    void = target < 0
    t = target.clamp(min=0)
    flat = logits.permute(0, 2, 3, 1)
    return F.cross_entropy(flat[void], t[void])  # error: padding-in-loss
for epoch in range(4):
    tot = 0.0
    for j in torch.randperm(200).split(20):
        x, y = img[j], lab[j]
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    print(epoch, tot / 10)
