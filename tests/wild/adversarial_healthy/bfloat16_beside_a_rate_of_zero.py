"""bfloat16 weights that rest for good reasons: a group with a rate of zero, a limit, and a long warm-up."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(12, 32).bfloat16(), nn.Linear(32, 3).bfloat16()
temp = nn.Parameter(torch.tensor(4.0, dtype=torch.bfloat16))
opt = torch.optim.AdamW(
    [
        {"params": body.parameters(), "lr": 0.0},
        {"params": head.parameters(), "lr": 5e-3},
        {"params": [temp], "lr": 1e-2},
    ],
    weight_decay=0.0,
)
x = torch.randn(500, 12)
y = (x @ torch.randn(12, 3)).argmax(1)
for s in range(240):
    i = torch.randint(0, 500, (50,))
    out = head(torch.relu(body(x[i].bfloat16()))).float() * temp.float()
    l = nn.functional.cross_entropy(out, y[i])
    opt.zero_grad()
    l.backward()
    opt.step()
    with torch.no_grad():
        temp.clamp_(1.0, 4.0)
print(round(l.item(), 3), temp.item())
net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3)).bfloat16()
o = torch.optim.SGD(net.parameters(), 0.2)
sch = torch.optim.lr_scheduler.LambdaLR(o, lambda k: min(1, (k + 1) / 150))
for s in range(250):
    i = torch.randint(0, 500, (50,))
    l = nn.functional.cross_entropy(net(x[i].bfloat16()).float(), torch.randint(0, 3, (50,)) if s > 400 else y[i])
    o.zero_grad()
    l.backward()
    o.step()
    sch.step()
print(round(l.item(), 3))
