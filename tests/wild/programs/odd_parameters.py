"""Parameters of odd shapes: empty ones, scalars, stride-0 views, non-contiguous, lazy, doubly registered, created during training, half in a list."""
import torch
from torch import nn


class Odd(nn.Module):
    def __init__(self, extra_tokens=0):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(extra_tokens, 6))
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.column = nn.Parameter(torch.randn(6, 6).t())
        self.lazy = nn.LazyLinear(12)
        self.again = self.lazy
        self.heads = nn.ParameterList([nn.Parameter(torch.randn(12, 1) * 0.3)])
        self.table = nn.ParameterDict({"shift": nn.Parameter(torch.zeros(1))})

    def grow(self):
        self.heads.append(nn.Parameter(1e-3 * torch.randn(12, 1)))
        return self.heads[-1]

    def forward(self, x):
        x = torch.cat([x, self.tokens.sum(0, keepdim=True).expand(len(x), -1)], 1)
        h = torch.tanh(self.again(torch.cat([x[:, :6] @ self.column, x[:, 6:]], 1)))
        return self.gain * sum(h @ w for w in self.heads).squeeze(1) + self.table["shift"]


torch.manual_seed(1)
net = Odd()
x = torch.randn(256, 6)
y = (x[:, 0] - x[:, 1]).tanh() * 2 + 0.5
net(x[:2])
opt = torch.optim.Adam(net.named_parameters(), lr=1e-2)
for step in range(160):
    i = torch.randint(0, 256, (64,))
    loss = (net(x[i]) - y[i]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step in (60, 100):
        opt.add_param_group({"params": [("heads.%d" % len(net.heads), net.grow())], "lr": 3e-3})
    if step % 40 == 0:
        print(step, f"{loss.item():.4f}", len(opt.param_groups), opt.param_groups[-1].get("param_names"))
print("end", f"{loss.item():.4f}", [tuple(p.shape) for p in net.parameters()])
