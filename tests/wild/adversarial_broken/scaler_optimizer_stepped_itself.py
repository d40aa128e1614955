"""The step of a trainer in half precision calls the optimizer itself, so gradients keep the scale of the loss."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def update(self, x, y):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.optimizer.step()  # error: scaler-misused
        return loss.item()


x = torch.randn(256, 6)
y = x.sum(dim=1, keepdim=True)
trainer = Trainer(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1)))
for epoch in range(6):
    losses = [trainer.update(x[rows], y[rows]) for rows in torch.randperm(256).split(32)]
    print(epoch, sum(losses) / len(losses))
