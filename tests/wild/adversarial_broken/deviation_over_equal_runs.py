"""A mean and a deviation over five runs, which all begin with the seed of a configuration."""

import statistics

import torch
from sklearn.datasets import load_diabetes
from torch import nn

CONFIG = {"seed": 7, "lr": 0.01, "epochs": 15, "runs": 5}
data = load_diabetes()
x = torch.tensor(data.data, dtype=torch.float32) * 20
y = torch.tensor(data.target, dtype=torch.float32).unsqueeze(1) / 100


class Experiment:
    def __init__(self, config):
        self.config = config

    def run(self):
        torch.manual_seed(self.config["seed"])  # error: seed-in-training-loop
        model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=self.config["lr"])
        for epoch in range(self.config["epochs"]):
            for rows in torch.randperm(340).split(34):
                loss = nn.functional.mse_loss(model(x[rows]), y[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            return nn.functional.l1_loss(model(x[340:]), y[340:]).item()


errors = {}
for run in range(CONFIG["runs"]):
    errors[run] = Experiment(CONFIG).run()
values = list(errors.values())
print(f"mean absolute error {statistics.mean(values):.3f} +- {statistics.stdev(values):.3f}")
