"""Healthy: SGD with an Armijo line search: losses of trial weights without gradients between the backward and the update, dropout off."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_iris


class Sls(torch.optim.Optimizer):
    """Stochastic line search; the closure returns the loss and runs no backward."""

    def __init__(self, params, init_step_size=1.0, c=0.1, beta_b=0.8, gamma=1.5):
        super().__init__(list(params), {})
        self.params = self.param_groups[0]["params"]
        self.c, self.beta_b, self.gamma, self.step_size, self.trials = c, beta_b, gamma, init_step_size, 0

    def step(self, closure):
        loss = closure()
        self.zero_grad()
        loss.backward()
        before = [p.detach().clone() for p in self.params]
        norm = sum(p.grad.square().sum() for p in self.params).item()
        size = min(self.step_size * self.gamma ** 0.1, 10.0)
        with torch.no_grad():
            for _ in range(30):
                for p, b in zip(self.params, before):
                    p.copy_(b - size * p.grad)
                self.trials += 1
                if closure().item() <= loss.item() - self.c * size * norm:
                    break
                size *= self.beta_b
            else:
                size = 1e-6
                for p, b in zip(self.params, before):
                    p.copy_(b - size * p.grad)
        self.step_size = size
        return loss


torch.manual_seed(0)
torch.set_num_threads(1)
iris = load_iris()
x = torch.tensor((iris.data - iris.data.mean(0)) / iris.data.std(0), dtype=torch.float32)
y = torch.tensor(iris.target)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
opt = Sls(model.parameters())
for epoch in range(10):
    for index in torch.randperm(len(x)).split(25):
        def closure():
            return F.cross_entropy(model(x[index]), y[index])

        loss = opt.step(closure)
    print(f"epoch {epoch} loss {loss.item():.4f} step size {opt.step_size:.3f}")
with torch.no_grad():
    print(f"accuracy {(model(x).argmax(1) == y).float().mean():.3f} after {opt.trials} trials")
