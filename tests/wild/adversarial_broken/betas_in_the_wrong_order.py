"""Broken: a configuration names the two decays of Adam, and the class that reads it passes them in the wrong order."""
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

CONFIG = {"lr": 3e-3, "decay_of_squares": 0.999, "decay_of_gradients": 0.9, "epochs": 6}
torch.manual_seed(5)
torch.set_num_threads(1)


class Trainer:
    def __init__(self, net, config):
        self.net = net
        betas = (config["decay_of_squares"], config["decay_of_gradients"])
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=config["lr"], betas=betas)  # error: optimizer-setting-out-of-range

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(self.net(x).squeeze(1), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


data = load_breast_cancer()
x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
y = torch.tensor(data.target, dtype=torch.float32)
trainer = Trainer(nn.Sequential(nn.Linear(30, 24), nn.ReLU(), nn.Linear(24, 1)), CONFIG)
for epoch in range(CONFIG["epochs"]):
    losses = [trainer.step(x[rows], y[rows]) for rows in torch.randperm(len(x)).split(32)]
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")
