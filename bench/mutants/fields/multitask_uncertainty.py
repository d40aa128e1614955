"""Two tasks on wine, weighted by learnt uncertainty (Kendall et al.)."""

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


class TwoHeads(nn.Module):
    """Shared trunk, one head for the cultivar and one for the alcohol content."""

    def __init__(self, n_in):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 24), nn.ReLU())
        self.cultivar = nn.Linear(24, 3)
        self.alcohol = nn.Linear(24, 1)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.cultivar(h), self.alcohol(h).squeeze(-1)


def combined_loss(model, logits, value, y_class, y_value):
    ce = nn.functional.cross_entropy(logits, y_class)
    mse = nn.functional.mse_loss(value, y_value)
    weight = torch.exp(-model.log_var)
    return weight[0] * ce + 0.5 * weight[1] * mse + 0.5 * model.log_var.sum(), ce, mse


torch.manual_seed(8)
data, cultivar = load_wine(return_X_y=True)
alcohol, features = data[:, 0], data[:, 1:6]
split = train_test_split(features, cultivar, alcohol, test_size=0.35, stratify=cultivar, random_state=8)
x_tr, x_va, c_tr, c_va, a_tr, a_va = split
x_scaler = StandardScaler().fit(x_tr)
a_mean, a_std = a_tr.mean(), a_tr.std()
x_tr, x_va = (torch.tensor(x_scaler.transform(v), dtype=torch.float32) for v in (x_tr, x_va))
a_tr, a_va = (torch.tensor((v - a_mean) / a_std, dtype=torch.float32) for v in (a_tr, a_va))
c_tr, c_va = torch.tensor(c_tr), torch.tensor(c_va)

net = TwoHeads(x_tr.shape[1])
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.8)
for step in range(1, 401):
    net.train()
    batch = torch.randint(0, len(x_tr), (32,))
    logits, value = net(x_tr[batch])
    loss, ce, mse = combined_loss(net, logits, value, c_tr[batch], a_tr[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        print(f"step {step}: loss {loss.item():.4f} ce {ce.item():.4f} mse {mse.item():.4f}")

net.eval()
with torch.no_grad():
    logits, value = net(x_va)
    print(f"cultivar accuracy {(logits.argmax(1) == c_va).float().mean():.4f}")
    print(f"cultivar nll {nn.functional.cross_entropy(logits, c_va):.4f}")
    print(f"alcohol rmse {(value - a_va).pow(2).mean().sqrt() * a_std:.4f}")
    print("log variances", [round(v, 3) for v in net.log_var.tolist()])
