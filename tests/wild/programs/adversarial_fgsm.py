"""Healthy: FGSM adversarial training: a backward only for the input's gradient, then zero_grad, then the training backward."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def fgsm_attack(model, x, y, epsilon):
    x_adv = x.clone().detach().requires_grad_(True)
    loss = F.cross_entropy(model(x_adv), y)
    model.zero_grad()
    loss.backward()
    return (x_adv + epsilon * x_adv.grad.sign()).detach()


def evaluate(model, loader, epsilon=0.0):
    model.eval()
    correct = 0
    for x, y in loader:
        if epsilon:
            x = fgsm_attack(model, x, y, epsilon)
        with torch.no_grad():
            correct += (model(x).argmax(1) == y).sum().item()
    model.zero_grad()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", default=0.3, type=float)
    parser.add_argument("--epochs", default=5, type=int)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    protos = torch.randn(4, 24)
    y = torch.randint(0, 4, (840,))
    x = protos[y] + 0.8 * torch.randn(840, 24)
    train_loader = DataLoader(TensorDataset(x[:640], y[:640]), batch_size=64, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[640:], y[640:]), batch_size=100)

    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        model.train()
        for xb, yb in train_loader:
            x_adv = fgsm_attack(model, xb, yb, args.epsilon)
            optimizer.zero_grad()  # the attack left gradients in the weights
            loss = 0.5 * F.cross_entropy(model(xb), yb) + 0.5 * F.cross_entropy(model(x_adv), yb)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f} clean {evaluate(model, test_loader):.3f} "
              f"robust {evaluate(model, test_loader, args.epsilon):.3f}")


if __name__ == "__main__":
    main()
