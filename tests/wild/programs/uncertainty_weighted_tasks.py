"""Healthy: multi-task learning with learned uncertainties: log-variances as parameters of the loss module, in a group without decay."""
import torch
from sklearn.datasets import make_regression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class MultiTaskLossWrapper(nn.Module):
    def __init__(self, model, task_num):
        super().__init__()
        self.model = model
        self.log_vars = nn.Parameter(torch.zeros(task_num))

    def forward(self, x, *targets):
        outputs = self.model(x)
        losses = [
            nn.functional.mse_loss(outputs[0], targets[0]),
            nn.functional.cross_entropy(outputs[1], targets[1]),
            nn.functional.l1_loss(outputs[2], targets[2]),
        ]
        total = sum(torch.exp(-s) * loss + 0.5 * s for s, loss in zip(self.log_vars, losses))
        return total, [loss.item() for loss in losses], outputs


class MultiTask(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(n_in, 48), nn.ReLU(), nn.Linear(48, 32), nn.ReLU())
        self.heads = nn.ModuleDict({"value": nn.Linear(32, 1), "kind": nn.Linear(32, 3), "count": nn.Linear(32, 2)})

    def forward(self, x):
        h = self.shared(x)
        return self.heads["value"](h), self.heads["kind"](h), nn.functional.softplus(self.heads["count"](h))


X, Y = make_regression(500, 10, n_informative=8, n_targets=4, random_state=0)
X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y / Y.std(0), dtype=torch.float32)
data = TensorDataset(X, 20 * Y[:, :1], Y[:, :3].argmax(1), Y[:, 2:].abs())
wrapper = MultiTaskLossWrapper(MultiTask(10), 3)
optimizer = torch.optim.AdamW([
    {"params": wrapper.model.parameters(), "lr": 3e-3, "weight_decay": 1e-2},
    {"params": [wrapper.log_vars], "lr": 5e-2, "weight_decay": 0.0},
])
for epoch in range(10):
    for x, value, kind, count in DataLoader(data, batch_size=50, shuffle=True):
        total, losses, _ = wrapper(x, value, kind, count)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
print("losses", [round(v, 3) for v in losses], "variances", [round(v, 3) for v in wrapper.log_vars.exp().tolist()])
