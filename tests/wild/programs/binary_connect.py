"""Healthy: BinaryConnect: weights replaced by their signs in .data for forward and backward, the real ones restored before the step."""
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

torch.manual_seed(0)
torch.set_num_threads(1)


class BC:
    def __init__(self, model):
        self.target_modules = [m.weight for m in model.modules() if isinstance(m, nn.Linear)][1:-1]
        self.saved_params = [p.data.clone() for p in self.target_modules]

    def save_params(self):
        for saved, p in zip(self.saved_params, self.target_modules):
            saved.copy_(p.data)

    def binarization(self):
        self.save_params()
        for p in self.target_modules:
            p.data.copy_(p.data.sign() * p.data.abs().mean())

    def restore(self):
        for saved, p in zip(self.saved_params, self.target_modules):
            p.data.copy_(saved)

    def clip(self):
        for p in self.target_modules:
            p.data.clamp_(-1, 1)


digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
model = nn.Sequential(
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(),
    nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
bin_op = BC(model)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    for index in torch.randperm(1300).split(65):
        optimizer.zero_grad()
        bin_op.binarization()
        loss = criterion(model(x[index]), y[index])
        loss.backward()
        bin_op.restore()
        optimizer.step()
        bin_op.clip()
    bin_op.binarization()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[1300:]).argmax(1) == y[1300:]).float().mean().item()
    values = model[3].weight.unique().numel()
    bin_op.restore()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy:.3f} with {values} different values in a layer")
