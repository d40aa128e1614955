# linear probes on a pretrained encoder and, as a comparison, on one with first weights (custom init)
import torch
from torch import nn
torch.manual_seed(0)
def make():
    m = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    for l in m:
        if isinstance(l, nn.Linear): nn.init.xavier_normal_(l.weight); nn.init.zeros_(l.bias)
    return m
z = torch.randn(1200, 4); x = torch.tanh(z @ torch.randn(4, 16)) + .1 * torch.randn(1200, 16); y = (z @ torch.randn(4, 3)).argmax(1)
enc = make(); dec = nn.Linear(32, 16)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 2e-3)
for ep in range(5):
    for i in torch.randperm(1000).split(50):
        loss = nn.functional.mse_loss(dec(enc(x[i])), x[i]); opt.zero_grad(); loss.backward(); opt.step()
def probe(e):
    e.eval()
    with torch.no_grad(): f = e(x)
    head = nn.Linear(32, 3); o = torch.optim.Adam(head.parameters(), 2e-2)
    for ep in range(5):
        for i in torch.randperm(1000).split(50):
            loss = nn.functional.cross_entropy(head(f[i]), y[i]); o.zero_grad(); loss.backward(); o.step()
    with torch.no_grad(): return (head(f[1000:]).argmax(1) == y[1000:]).float().mean().item()
scratch = make()
print("pretrained", probe(enc), "from scratch", probe(scratch))
