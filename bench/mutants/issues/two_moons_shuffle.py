"""Two interleaved half-moons, micrograd-style MLP with a max-margin loss, but on torch tensors."""
import math

import torch

torch.manual_seed(1337)


def make_moons(n, noise=0.25):
    t = math.pi * torch.rand(n)
    label = torch.randint(0, 2, (n,)).float() * 2 - 1          # -1 or +1
    x = torch.where(label > 0, torch.cos(t), 1 - torch.cos(t))
    y = torch.where(label > 0, torch.sin(t), 0.5 - torch.sin(t))
    points = torch.stack([x, y], dim=1) + noise * torch.randn(n, 2)
    return torch.cat([points, label.unsqueeze(1)], dim=1)      # columns: x, y, label


class MLP:
    def __init__(self, sizes):
        self.weights = [torch.randn(a, b) / a ** 0.5 for a, b in zip(sizes, sizes[1:])]
        self.biases = [torch.zeros(b) for b in sizes[1:]]
        for p in self.parameters():
            p.requires_grad = True

    def __call__(self, x):
        for i, (w, b) in enumerate(zip(self.weights, self.biases)):
            x = x @ w + b
            if i < len(self.weights) - 1:
                x = x.relu()
        return x[:, 0]

    def parameters(self):
        return self.weights + self.biases

    def zero_grad(self):
        for p in self.parameters():
            p.grad = None


def loss_fn(model, rows, alpha=1e-4):
    margins = (1 - rows[:, 2] * model(rows[:, :2])).relu().mean()
    return margins + alpha * sum((p * p).sum() for p in model.parameters())


@torch.no_grad()
def accuracy(model, rows):
    return ((model(rows[:, :2]) > 0) == (rows[:, 2] > 0)).float().mean().item()


data = make_moons(700)
train_rows, val_rows = data[:300].clone(), data[300:].clone()

model = MLP([2, 32, 32, 1])
epochs, batch_size = 90, 30
for epoch in range(epochs):
    train_rows = train_rows[torch.randperm(len(train_rows))]
    lr = 0.2 * (1 - 0.9 * epoch / epochs)
    running = 0.0
    for i in range(0, len(train_rows), batch_size):
        batch = train_rows[i:i + batch_size]
        loss = loss_fn(model, batch)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= lr * p.grad
        running += loss.item() * len(batch)
    if epoch % 10 == 9:
        print(f'epoch {epoch + 1}: loss {running / len(train_rows):.4f}, '
              f'train {100 * accuracy(model, train_rows):.1f} %, val {100 * accuracy(model, val_rows):.1f} %')

print(f'validation accuracy {accuracy(model, val_rows):.4f}')
