# spam: false positives are twice as costly; ham is 80 % of the mails
import torch
from torch import nn
torch.manual_seed(0)
n = 2000
y = (torch.rand(n) < .17).long()
x = torch.randn(n, 10); x[:, 0] += 1.5 * y; x[:, 1] -= y
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:1600], y[:1600]), 64, shuffle=True)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.Adam(net.parameters(), 3e-3)
crit = nn.CrossEntropyLoss(weight=torch.tensor([2.0, 1.0]))  # ham marked as spam is worse than spam in the inbox
for ep in range(40):
    net.train()
    for a, b in loader:
        opt.zero_grad(); loss = crit(net(a), b); loss.backward(); opt.step()
    net.eval()
    with torch.no_grad():
        print((net(x[1600:]).argmax(1) == y[1600:]).float().mean())
