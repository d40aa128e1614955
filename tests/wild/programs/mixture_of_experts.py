"""Healthy: mixture of experts with top-1 routing: experts without tokens have no gradient on some steps."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Sequential):
    def __init__(self, dim, hidden):
        super().__init__(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))


class MoE(nn.Module):
    def __init__(self, dim=12, hidden=24, num_experts=6):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(num_experts))

    def forward(self, x):
        probs = F.softmax(self.gate(x), dim=-1)
        weight, choice = probs.max(dim=-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (choice == i).nonzero(as_tuple=True)[0]
            if rows.numel() == 0:
                continue  # no token chose this expert
            out = out.index_add(0, rows, weight[rows, None] * expert(x[rows]))
        # load balancing as in Switch Transformers
        share = F.one_hot(choice, len(self.experts)).float().mean(0)
        aux = len(self.experts) * (share * probs.mean(0)).sum()
        return x + out, aux


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.embed = nn.Linear(8, 12)
        self.moe = MoE()
        self.norm = nn.LayerNorm(12)
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        h, aux = self.moe(self.embed(x))
        return self.head(self.norm(h)), aux


torch.manual_seed(0)
torch.set_num_threads(1)
maps = torch.randn(3, 8, 4)


def sample(n):
    """The first coordinate decides which of three linear rules makes the label."""
    x = torch.randn(n, 8)
    rule = torch.bucketize(x[:, 0].contiguous(), torch.tensor([-0.43, 0.43]))
    return x, torch.einsum("nd,ndc->nc", x, maps[rule]).argmax(1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
idle = 0
for step in range(120):
    x, y = sample(24)
    logits, aux = model(x)
    loss = F.cross_entropy(logits, y) + 0.01 * aux
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    idle += sum(e[0].weight.grad is None for e in model.moe.experts)
    optimizer.step()

model.eval()
with torch.no_grad():
    x, y = sample(1000)
    acc = (model(x)[0].argmax(1) == y).float().mean().item()
print(f"loss {loss.item():.4f}, test accuracy {acc:.4f}, expert idle {idle} times in {120 * 6}")
