"""Healthy: DARTS: architecture weights stepped on a validation batch, network weights on a training batch; gradients of both, cleared late."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer

torch.manual_seed(0)
torch.set_num_threads(1)

OPS = {
    "none": lambda d: nn.Identity(),
    "linear_relu": lambda d: nn.Sequential(nn.Linear(d, d), nn.ReLU()),
    "linear_tanh": lambda d: nn.Sequential(nn.Linear(d, d), nn.Tanh()),
    "bottleneck": lambda d: nn.Sequential(nn.Linear(d, 4), nn.ReLU(), nn.Linear(4, d)),
}


class MixedOp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self._ops = nn.ModuleList(make(dim) for make in OPS.values())

    def forward(self, x, weights):
        return sum(w * op(x) for w, op in zip(weights, self._ops))


class Network(nn.Module):
    def __init__(self, criterion, dim=16, layers=3):
        super().__init__()
        self._criterion = criterion
        self.stem = nn.Linear(30, dim)
        self.cells = nn.ModuleList(MixedOp(dim) for _ in range(layers))
        self.classifier = nn.Linear(dim, 2)
        self.alphas = nn.Parameter(1e-3 * torch.randn(layers, len(OPS)))

    def forward(self, input):
        s = self.stem(input)
        for cell, alpha in zip(self.cells, F.softmax(self.alphas, dim=-1)):
            s = cell(s, alpha)
        return self.classifier(s)

    def _loss(self, input, target):
        return self._criterion(self(input), target)

    def arch_parameters(self):
        return [self.alphas]

    def weights(self):
        return [p for n, p in self.named_parameters() if n != "alphas"]


class Architect(object):
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.arch_parameters(), lr=3e-2, betas=(0.5, 0.999), weight_decay=1e-3)

    def step(self, input_valid, target_valid):
        self.optimizer.zero_grad()
        loss = self.model._loss(input_valid, target_valid)
        loss.backward()
        self.optimizer.step()


data = load_breast_cancer()
x = torch.tensor((data.data - data.data.mean(0)) / data.data.std(0), dtype=torch.float32)
y, n = torch.tensor(data.target), 280
model = Network(nn.CrossEntropyLoss())
architect = Architect(model)
optimizer = torch.optim.SGD(model.weights(), 0.05, momentum=0.9, weight_decay=3e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6, eta_min=1e-3)
train_queue = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:n], y[:n]), batch_size=28, shuffle=True)
valid_queue = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[n:], y[n:]), batch_size=28, shuffle=True)
for epoch in range(6):
    model.train()
    for input, target in train_queue:
        input_search, target_search = next(iter(valid_queue))
        architect.step(input_search, target_search)
        optimizer.zero_grad()
        loss = model._loss(input, target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.weights(), 5)
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        correct = sum((model(a).argmax(1) == b).sum().item() for a, b in valid_queue)
    print(f"epoch {epoch} valid_acc {correct / (len(x) - n):.3f}")
print("genotype", [list(OPS)[i] for i in model.alphas.argmax(1).tolist()])
