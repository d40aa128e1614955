"""Tensors of the best figure: of finished starts, replaced ones, copied at the end of each epoch, and a wider net."""
import copy

import torch

torch.manual_seed(0)
inputs, truth = torch.randn(200, 10), torch.randn(10)
targets = torch.sin(inputs @ truth)


def loss_of(weights, start=None):
    rows = slice(0, 200) if start is None else slice(start, start + 20)
    return ((torch.tanh(inputs[rows] @ weights["hidden"]) @ weights["out"] - targets[rows]) ** 2).mean()


def new():
    return {"hidden": (torch.randn(10, 8) * 0.5).requires_grad_(), "out": (torch.randn(8) * 0.5).requires_grad_()}


def starts():
    best, kept = float("inf"), None
    for _ in range(4):
        weights = new()
        optimizer = torch.optim.Adam(weights.values(), 1e-2)
        for step in range(40):
            optimizer.zero_grad()
            loss_of(weights, step % 10 * 20).backward()
            optimizer.step()
        final = loss_of(weights).item()
        if final < best:
            best, kept = final, weights
    print(best, loss_of(kept).item())


def replaced():
    weights, best, kept = new(), float("inf"), None
    for _ in range(150):
        loss = loss_of(weights)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        if loss.item() < best:
            best = loss.item()
            kept = weights
        moved = zip(weights.items(), gradients, strict=True)
        weights = {name: (value - 0.1 * slope).detach().requires_grad_() for (name, value), slope in moved}
    print(best, loss_of(kept).item())


def archived():
    weights = new()
    optimizer = torch.optim.Adam(weights.values(), 1e-2)
    best, pending, archive = float("inf"), None, []
    for _epoch in range(15):
        for step in range(10):
            loss = loss_of(weights, step * 20)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() < best:
                best = loss.item()
                pending = weights
        if pending is not None:
            archive.append({name: value.detach().clone() for name, value in pending.items()})
            pending = None
    print(best, len(archive))


class Trainer:
    def __init__(self):
        self.weights, self.best, self.kept = new(), float("inf"), None

    def fit(self):
        optimizer = torch.optim.Adam(self.weights.values(), 1e-2)
        for step in range(150):
            loss = loss_of(self.weights, step % 10 * 20)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 9:
                figure = loss_of(self.weights).item()
                if figure < self.best:
                    self.best = figure
                    self.kept = copy.deepcopy(self.weights)
        self.weights = self.kept
        print(loss_of(self.weights).item(), self.best)


def growing():
    width = 4
    params = [(torch.randn(10, width) * 0.3).requires_grad_(), (torch.randn(width) * 0.3).requires_grad_()]
    optimizer = torch.optim.Adam(params, 1e-2)
    best = float("inf")
    for _epoch in range(40):
        for row in range(0, 200, 20):
            batch = inputs[row : row + 20]
            loss = ((torch.tanh(batch @ params[0]) @ params[1] - targets[row : row + 20]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            full = ((torch.tanh(inputs @ params[0]) @ params[1] - targets) ** 2).mean().item()
        if full < best - 0.05 and width < 32:
            best = full
            params = [
                torch.cat([params[0].detach(), torch.randn(10, width) * 0.01], 1).requires_grad_(),
                torch.cat([params[1].detach(), torch.zeros(width)]).requires_grad_(),
            ]
            width *= 2
            optimizer = torch.optim.Adam(params, 1e-2)
    print(full, width)


starts()
replaced()
archived()
Trainer().fit()
growing()
