"""Fine-tuning by progressive unfreezing: head first, then block by block with add_param_group and smaller rates for deeper blocks."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def build():
    return nn.ModuleDict({
        "block1": nn.Sequential(nn.Linear(64, 64), nn.ReLU()),
        "block2": nn.Sequential(nn.Linear(64, 48), nn.ReLU()),
        "head": nn.Linear(48, 5),
    })


def forward(net, x):
    return net["head"](net["block2"](net["block1"](x)))


def run_epochs(net, optimizer, x, y, epochs):
    net.train()
    for _ in range(epochs):
        for index in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(forward(net, x[index]), y[index])
            loss.backward()
            optimizer.step()
    return loss.item()


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (forward(net, x).argmax(1) == y).float().mean().item()


torch.manual_seed(1)
bunch = load_digits()
x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
low, high = y < 5, y >= 5

pretrained = build()
loss = run_epochs(pretrained, torch.optim.Adam(pretrained.parameters(), 3e-3), x[low], y[low], 4)
print(f"pretrained on digits below five: loss {loss:.3f}")

net = build()
state = {k: v for k, v in pretrained.state_dict().items() if not k.startswith("head")}
missing, unexpected = net.load_state_dict(state, strict=False)
print("not loaded:", missing)
for name in ("block1", "block2"):
    net[name].requires_grad_(False)

x_new, y_new = x[high], y[high] - 5
train, test = torch.arange(300), torch.arange(300, len(x_new))
rate = 5e-3
optimizer = torch.optim.Adam(net["head"].parameters(), lr=rate)
for stage, name in enumerate([None, "block2", "block1"]):
    if name is not None:
        rate /= 2.6
        net[name].requires_grad_(True)
        optimizer.add_param_group({"params": net[name].parameters(), "lr": rate})
    loss = run_epochs(net, optimizer, x_new[train], y_new[train], 4)
    print(f"stage {stage} groups {len(optimizer.param_groups)} loss {loss:.3f} test {accuracy(net, x_new[test], y_new[test]):.3f}")
