# corrupted test sets in a loop over a dict of loaders, and x_test that is evaluated under noise for robustness
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
def make(n):
    y = torch.randint(0, 3, (n,)); x = .2 * torch.randn(n, 8); x[torch.arange(n), y] += 1; return x, y
x, y = make(1000); x_val, y_val = make(200); x_test, y_test = make(200)
train_loader = DataLoader(TensorDataset(x, y), 50, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), 100)
test_loader = DataLoader(TensorDataset(x_test, y_test), 100)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3)); opt = torch.optim.Adam(net.parameters(), 3e-3)
for ep in range(6):
    net.train()
    for a, b in train_loader:
        opt.zero_grad(); nn.functional.cross_entropy(net(a), b).backward(); opt.step()
    net.eval()
    with torch.no_grad():
        print(ep, sum((net(a).argmax(1) == b).sum().item() for a, b in val_loader) / 200)
# what happens far from the data: confidence should fall
with torch.no_grad():
    conf = 0
    for a, b in test_loader:
        noise = 5 * torch.randn_like(a)
        conf += net(noise).softmax(1).max(1).values.sum().item()
    print("confidence on noise", conf / 200)
