"""Healthy: growing cellular automaton: gradients normalised by hand before the step, a pool of states, steps of random number through time."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
CHANNELS, SIZE = 8, 12


class CAModel(nn.Module):
    def __init__(self, fire_rate=0.5):
        super().__init__()
        sobel = torch.outer(torch.tensor([1.0, 2.0, 1.0]), torch.tensor([-1.0, 0.0, 1.0])) / 8
        identity = torch.zeros(3, 3)
        identity[1, 1] = 1
        kernel = torch.stack([identity, sobel, sobel.T])[:, None].repeat(CHANNELS, 1, 1, 1)
        self.register_buffer("kernel", kernel)
        self.fc0, self.fc1 = nn.Conv2d(3 * CHANNELS, 48, 1), nn.Conv2d(48, CHANNELS, 1, bias=False)
        nn.init.zeros_(self.fc1.weight)
        self.fire_rate = fire_rate

    def alive(self, x):
        return F.max_pool2d(x[:, :1], 3, stride=1, padding=1) > 0.1

    def forward(self, x):
        before = self.alive(x)
        dx = self.fc1(F.relu(self.fc0(F.conv2d(x, self.kernel, padding=1, groups=CHANNELS))))
        x = x + dx * (torch.rand_like(x[:, :1]) <= self.fire_rate).float()
        return x * (before & self.alive(x)).float()


axis = torch.linspace(-1, 1, SIZE)
radius = (axis[:, None] ** 2 + axis**2).sqrt()
target = ((radius < 0.8) & (radius > 0.35)).float()
seed = torch.zeros(1, CHANNELS, SIZE, SIZE)
seed[:, :, SIZE // 2, SIZE // 2] = 1.0
pool = seed.repeat(24, 1, 1, 1)
model = CAModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[40], gamma=0.3)
log = []
for i in range(60):
    index = torch.randperm(len(pool))[:6]
    batch = pool[index]
    worst = (batch[:, 0] - target).square().mean((1, 2)).argmax()
    batch[worst] = seed[0]
    x = batch
    for _ in range(int(torch.randint(10, 16, ()))):
        x = model(x)
    loss = (x[:, 0] - target).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.grad /= p.grad.norm() + 1e-8
    optimizer.step()
    optimizer.zero_grad()
    scheduler.step()
    pool[index] = x.detach()
    log.append(loss.item())
print(f"loss {sum(log[:5]) / 5:.3f} -> {sum(log[-5:]) / 5:.3f}, cells alive in the pool {(pool[:, 0] > 0.1).float().mean():.2f}")
