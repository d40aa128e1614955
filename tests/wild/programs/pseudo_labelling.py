"""Healthy: pseudo-labelling (FixMatch): labels from a gradient-free forward in train mode inside every training step."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 48)
        self.bn1 = nn.BatchNorm1d(48)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(48, 3)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.bn1(self.fc1(x)))))


def weak(x):
    return x + 0.1 * torch.randn_like(x)


def strong(x):
    return (x + 0.3 * torch.randn_like(x)) * (torch.rand_like(x) > 0.15)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--threshold", type=float, default=0.9)
    p.add_argument("--lambda-u", type=float, default=0.5)
    p.add_argument("--steps", type=int, default=120)
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    means = 1.1 * torch.randn(3, 12)

    def data(n):
        y = torch.randint(0, 3, (n,))
        return means[y] + torch.randn(n, 12), y

    x_l, y_l = data(48)
    x_u, _ = data(1200)
    x_test, y_test = data(600)
    model = Net()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    mask_rate = 0.0
    for step in range(args.steps):
        i, j = torch.randint(0, 48, (24,)), torch.randint(0, 1200, (72,))
        loss_x = F.cross_entropy(model(weak(x_l[i])), y_l[i])
        with torch.no_grad():
            probs = torch.softmax(model(weak(x_u[j])), dim=-1)
            max_probs, targets_u = torch.max(probs, dim=-1)
            mask = max_probs.ge(args.threshold).float()
        loss_u = (F.cross_entropy(model(strong(x_u[j])), targets_u, reduction="none") * mask).mean()
        loss = loss_x + args.lambda_u * loss_u
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mask_rate = 0.9 * mask_rate + 0.1 * mask.mean().item()

    model.eval()
    with torch.no_grad():
        acc = (model(x_test).argmax(1) == y_test).float().mean().item()
    print(f"loss {loss.item():.4f}, mask rate {mask_rate:.3f}, test accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
