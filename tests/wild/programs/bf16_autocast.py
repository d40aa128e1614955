"""Healthy: bfloat16 CPU autocast around forward and loss only, no scaler, float32 parameters."""
import torch
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)


class ConvMixer(nn.Module):
    def __init__(self, dim=16, classes=3):
        super().__init__()
        self.patch = nn.Conv2d(1, dim, 2, stride=2)
        self.depth = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.point = nn.Conv2d(dim, dim, 1)
        self.norm = nn.GroupNorm(4, dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = nn.functional.gelu(self.patch(x))
        x = x + nn.functional.gelu(self.depth(x))
        x = self.norm(self.point(x))
        return self.head(x.amax((2, 3)))


def shapes(n):
    """Cross, box or diagonal on a noisy background."""
    stamp = torch.zeros(3, 5, 5)
    stamp[0, 2], stamp[0, :, 2] = 1, 1
    stamp[1, [0, 4]], stamp[1, :, 0], stamp[1, :, 4] = 1, 1, 1
    stamp[2] = torch.eye(5)
    y = torch.randint(0, 3, (n,))
    img = 0.25 * torch.randn(n, 1, 10, 10)
    for k, (r, c) in enumerate(torch.randint(0, 6, (n, 2)).tolist()):
        img[k, 0, r:r + 5, c:c + 5] += stamp[y[k]]
    return (img - 0.1) / 0.4, y


net = ConvMixer()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x_train, y_train = shapes(384)
x_test, y_test = shapes(120)

for epoch in range(6):
    net.train()
    total = 0.0
    for idx in torch.randperm(384).split(48):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(x_train[idx]), y_train[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print("epoch", epoch, "loss", round(total / 8, 4))

net.eval()
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    logits = net(x_test)
print("test accuracy", (logits.float().argmax(1) == y_test).float().mean().item(), logits.dtype)
