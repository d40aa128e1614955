"""Healthy: a hypernetwork writes the weights of a target network, run by functional_call; the target's own parameters stay unused."""
import torch
from torch import nn
from torch.func import functional_call


class HyperNetwork(nn.Module):
    def __init__(self, target, task_dim, hidden=32):
        super().__init__()
        self.shapes = {name: p.shape for name, p in target.named_parameters()}
        self.trunk = nn.Sequential(nn.Linear(task_dim, hidden), nn.ReLU())
        self.heads = nn.ModuleDict({n.replace(".", "_"): nn.Linear(hidden, s.numel()) for n, s in self.shapes.items()})
        for head in self.heads.values():
            nn.init.normal_(head.weight, std=0.05)

    def forward(self, task):
        h = self.trunk(task)
        return {n: self.heads[n.replace(".", "_")](h).view(s) for n, s in self.shapes.items()}


torch.manual_seed(0)
torch.set_num_threads(1)
target = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
hyper = HyperNetwork(target, task_dim=2)
optimizer = torch.optim.Adam(hyper.parameters(), lr=5e-3)


def task_batch():
    amplitude, shift = 0.5 + torch.rand(1), 3 * torch.rand(1)
    x = 4 * torch.rand(32, 1) - 2
    return torch.cat([amplitude, shift]), x, amplitude * torch.sin(x + shift)


for step in range(250):
    optimizer.zero_grad()
    loss = 0.0
    for _ in range(4):
        task, x, y = task_batch()
        loss = loss + nn.functional.mse_loss(functional_call(target, hyper(task), (x,)), y) / 4
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} loss {loss.item():.4f}")

with torch.no_grad():
    errors = [nn.functional.mse_loss(functional_call(target, hyper(t), x), y).item() for t, x, y in (task_batch() for _ in range(50))]
print(f"error on new tasks {sum(errors) / 50:.4f}")
