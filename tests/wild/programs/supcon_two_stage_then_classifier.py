"""Supervised contrastive learning in two stages: encoder with projection head first, then a linear classifier on the frozen encoder."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class SupConNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return F.normalize(self.head(self.encoder(x)), dim=1)


def supcon(features, labels, temperature=0.1):
    logits = features @ features.T / temperature
    logits = logits - logits.max(dim=1, keepdim=True).values.detach()
    itself = torch.eye(len(labels), dtype=torch.bool)
    same = (labels[:, None] == labels[None]) & ~itself
    log_prob = logits - torch.logsumexp(logits.masked_fill(itself, -1e9), dim=1, keepdim=True)
    return -((log_prob * same).sum(1) / same.sum(1).clamp(min=1)).mean()


def stage_one(net, x, y, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        net.train()
        for index in torch.randperm(len(x)).split(100):
            views = torch.cat([x[index] + 0.1 * torch.randn(len(index), 64) for _ in range(2)])
            loss = supcon(net(views), y[index].repeat(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"stage one, epoch {epoch}: {loss.item():.3f}")


def stage_two(net, classifier, x, y, epochs):
    optimizer = torch.optim.Adam(classifier.parameters(), lr=2e-2)
    net.eval()
    classifier.train()
    for epoch in range(epochs):
        for index in torch.randperm(len(x)).split(100):
            with torch.no_grad():
                features = net.encoder(x[index])
            loss = F.cross_entropy(classifier(features.detach()), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"stage two: {loss.item():.3f}")


def validate(net, classifier, x, y):
    net.eval()
    classifier.eval()
    with torch.no_grad():
        return (classifier(net.encoder(x)).argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(7)
    bunch = load_digits()
    x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
    order = torch.randperm(len(x))
    train, test = order[:1000], order[1000:]
    net, classifier = SupConNet(), nn.Linear(32, 10)
    stage_one(net, x[train], y[train], 4)
    stage_two(net, classifier, x[train], y[train], 5)
    print(f"test accuracy {validate(net, classifier, x[test], y[test]):.3f}")
