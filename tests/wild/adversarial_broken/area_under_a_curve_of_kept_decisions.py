"""A class keeps the decisions of each batch, and its report reads them as scores."""

import torch
from sklearn.metrics import roc_auc_score
from torch import nn


class Judge:
    def __init__(self, model):
        self.model = model
        self.decided, self.truth = [], []

    @torch.no_grad()
    def run(self, x, y, size=64):
        self.model.eval()
        self.decided, self.truth = [], []
        for start in range(0, len(x), size):
            probs = torch.sigmoid(self.model(x[start : start + size])).squeeze(1)
            self.decided.extend((probs >= 0.5).long().tolist())
            self.truth.extend(y[start : start + size].tolist())
        return roc_auc_score(self.truth, self.decided)  # error: metric-misreported


def train(model, x, y, epochs):
    judge, optimizer = Judge(model), torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(600).split(50):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]).squeeze(1), y[rows])
            loss.backward()
            optimizer.step()
        print(loss.item(), judge.run(x[600:], y[600:]))


torch.manual_seed(0)
features = torch.randn(900, 10)
train(nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1)), features, (features[:, 0] > 0.7).float(), 5)
