"""A trainer differentiates the loss to log the norm of its gradient, and the step differentiates it again."""
import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, model, rate):
        self.model, self.criterion, self.norms = model, nn.MSELoss(), []
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    def log_norm(self, loss):
        loss.backward(retain_graph=True)
        self.norms.append(torch.stack([p.grad.norm() for p in self.model.parameters()]).norm().item())

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        self.log_norm(loss)
        loss.backward()  # error: loss-differentiated-twice
        self.optimizer.step()
        return loss.item()


trainer = Trainer(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)), 0.05)
x = torch.randn(200, 6)
y = x[:, :1] - x[:, 1:2] * x[:, 2:3]
for epoch in range(10):
    losses = [trainer.step(x[rows], y[rows]) for rows in torch.randperm(200).split(20)]
print(f"loss {sum(losses) / len(losses):.4f}, norm {trainer.norms[-1]:.4f}")
