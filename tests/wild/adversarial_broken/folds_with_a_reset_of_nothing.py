"""A cross-validation that resets its network by a method that no layer has: nothing is reset."""
import torch
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset


def reset(layer):
    if hasattr(layer, "reset_params"):  # the name is reset_parameters
        layer.reset_params()


class CrossValidation:
    def __init__(self, model, data, folds):
        self.model, self.data, self.folds = model, data, folds
        self.scores = []

    def run(self):
        rows = torch.randperm(len(self.data)).tolist()
        size = len(rows) // self.folds
        for fold in range(self.folds):
            held = rows[fold * size : (fold + 1) * size]
            self.fold([row for row in rows if row not in held], held)

    def fold(self, rows, held):
        self.model.apply(reset)
        training = DataLoader(self.data, batch_size=32, sampler=SubsetRandomSampler(rows))
        validation = DataLoader(self.data, batch_size=64, sampler=SubsetRandomSampler(held))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)  # error: train-validation-overlap
        for epoch in range(5):
            self.model.train()
            for x, y in training:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x), y)
                loss.backward()
                optimizer.step()
        self.model.eval()
        right = 0
        with torch.no_grad():
            for x, y in validation:
                right += (self.model(x).argmax(1) == y).sum().item()
        self.scores.append(right / len(held))


torch.manual_seed(1)
x = torch.randn(400, 10)
y = (x[:, :3].sum(1) > 0).long()
validation = CrossValidation(nn.Sequential(nn.Linear(10, 40), nn.Tanh(), nn.Linear(40, 2)), TensorDataset(x, y), 4)
validation.run()
print("accuracy by fold", validation.scores)
