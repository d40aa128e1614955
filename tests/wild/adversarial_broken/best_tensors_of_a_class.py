"""A classifier of plain tensors in a class: the dict of the best epoch is a copy, its tensors are the trained ones."""
import torch
from torch.nn import functional as F


class Classifier:
    def __init__(self, features, classes):
        self.params = {
            "hidden": (torch.randn(features, 64) / features**0.5).requires_grad_(),
            "out": (torch.randn(64, classes) / 8).requires_grad_(),
        }
        self.best_accuracy, self.best_params = 0.0, None

    def logits(self, rows):
        return torch.relu(rows @ self.params["hidden"]) @ self.params["out"]

    def fit(self, rows, labels, held_rows, held_labels, epochs=25):
        optimizer = torch.optim.SGD(self.params.values(), lr=0.3, momentum=0.9)
        for _ in range(epochs):
            for batch in torch.randperm(len(rows)).split(32):
                optimizer.zero_grad()
                F.cross_entropy(self.logits(rows[batch]), labels[batch]).backward()
                optimizer.step()
            with torch.no_grad():
                accuracy = (self.logits(held_rows).argmax(1) == held_labels).float().mean().item()
            if accuracy > self.best_accuracy:
                self.best_accuracy = accuracy
                self.best_params = dict(self.params)  # error: best-weights-aliased
        self.params = self.best_params
        return self


torch.manual_seed(0)
data = torch.randn(600, 12)
classes = (data[:, :3].sum(1) > 0).long()
noisy = torch.where(torch.rand(200) < 0.3, 1 - classes[:200], classes[:200])
model = Classifier(12, 2).fit(data[:200], noisy, data[200:300], classes[200:300])
with torch.no_grad():
    print((model.logits(data[300:]).argmax(1) == classes[300:]).float().mean().item())
