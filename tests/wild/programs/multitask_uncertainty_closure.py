"""Multi-task learning with learned uncertainty weights: shared trunk, log-variances as parameters, steps in a closure made by a factory."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_trainer(trunk, heads, log_vars, lr):
    groups = [{"params": [*trunk.parameters(), *heads.parameters()]}, {"params": list(log_vars.values()), "lr": 10 * lr}]
    optimizer = torch.optim.Adam(groups, lr=lr)
    losses = {"value": F.mse_loss, "sign": F.binary_cross_entropy_with_logits, "kind": F.cross_entropy}

    def forward(x):
        h = trunk(x)
        return {name: head(h).squeeze(1) if name != "kind" else head(h) for name, head in heads.items()}

    def train_step(x, targets):
        outputs = forward(x)
        parts = {name: losses[name](outputs[name], targets[name]) for name in outputs}
        total = sum(torch.exp(-log_vars[name]) * part + log_vars[name] for name, part in parts.items())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        return {name: part.item() for name, part in parts.items()}

    @torch.no_grad()
    def evaluate(x, targets):
        outputs = forward(x)
        return {
            "rmse": F.mse_loss(outputs["value"], targets["value"]).sqrt().item(),
            "sign": ((outputs["sign"] > 0).float() == targets["sign"]).float().mean().item(),
            "kind": (outputs["kind"].argmax(1) == targets["kind"]).float().mean().item(),
        }

    return train_step, evaluate


def sample(n, g):
    x = torch.randn(n, 6, generator=g)
    value = 5 * x[:, 0] * x[:, 1] + 0.5 * torch.randn(n, generator=g)
    return x, {"value": value, "sign": (x[:, 2] + x[:, 3] > 0).float(), "kind": x[:, 3:6].argmax(1)}


torch.manual_seed(0)
g = torch.Generator().manual_seed(4)
trunk = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
heads = nn.ModuleDict({"value": nn.Linear(32, 1), "sign": nn.Linear(32, 1), "kind": nn.Linear(32, 3)})
log_vars = {name: nn.Parameter(torch.zeros(())) for name in heads}
train_step, evaluate = make_trainer(trunk, heads, log_vars, lr=3e-3)
test = sample(500, g)
print("before", {k: round(v, 3) for k, v in evaluate(*test).items()})
for step in range(300):
    parts = train_step(*sample(64, g))
print("after", {k: round(v, 3) for k, v in evaluate(*test).items()}, "weights", {k: round((-v).exp().item(), 3) for k, v in log_vars.items()})
