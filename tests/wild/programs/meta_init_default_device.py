"""The model is built on the meta device, given storage by to_empty and initialised by hand; float64 by default."""
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
torch.set_default_device("cpu")
torch.manual_seed(11)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("scale", torch.ones(()), persistent=False)

    def forward(self, x):
        return x + self.scale * self.down(torch.nn.functional.silu(self.up(self.norm(x))))

    def reset_parameters(self):
        self.scale.fill_(0.5)


with torch.device("meta"):
    net = nn.Sequential(nn.Linear(8, 32), Block(32), Block(32), nn.Linear(32, 1))
print("on", {p.device.type for p in net.parameters()})
net.to_empty(device="cpu")


@torch.no_grad()
def init(m):
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()


net.apply(init)

with torch.device("cpu"):
    x = torch.rand(300, 8) * 2 - 1
    y = (x[:, :4].prod(1, keepdim=True) * 4 + x[:, 4:].sum(1, keepdim=True)).sin()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, amsgrad=True, maximize=True)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(300).split(30):
        opt.zero_grad()
        gain = -nn.functional.huber_loss(net(x[rows]), y[rows], delta=0.3)
        gain.backward()
        opt.step()
        total += gain.item()
    if epoch % 4 == 0:
        print("epoch", epoch, "gain", round(total / 10, 5))
print(next(net.parameters()).dtype, round(total / 10, 5))
