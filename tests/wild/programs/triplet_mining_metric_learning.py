"""Metric learning with batch-hard triplets: classes-by-samples batches from a generator, normalised embeddings, recall at one."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


def balanced_batches(labels, classes, per_class, batches, g):
    """Yield indices of batches with a number of samples from each of some classes."""
    groups = [torch.where(labels == c)[0] for c in labels.unique()]
    for _ in range(batches):
        chosen = torch.randperm(len(groups), generator=g)[:classes].tolist()
        yield torch.cat([groups[c][torch.randperm(len(groups[c]), generator=g)[:per_class]] for c in chosen])


def batch_hard(embeddings, labels, margin=0.3):
    distances = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None]
    itself = torch.eye(len(labels), dtype=torch.bool)
    hardest_positive = distances.masked_fill(~same | itself, 0).amax(1)
    hardest_negative = distances.masked_fill(same, float("inf")).amin(1)
    return F.relu(hardest_positive - hardest_negative + margin).mean()


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 16))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def recall_at_one(model, x, y):
    model.eval()
    with torch.no_grad():
        z = model(x)
    similarity = (z @ z.T).fill_diagonal_(-1)
    return (y[similarity.argmax(1)] == y).float().mean().item()


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    bunch = load_digits()
    x, y = torch.tensor(bunch.data, dtype=torch.float32) / 16, torch.tensor(bunch.target)
    seen = y < 7  # the last three classes are new in the test
    model = Embedder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    print(f"recall on new classes before {recall_at_one(model, x[~seen], y[~seen]):.3f}")
    for epoch in range(5):
        model.train()
        for index in balanced_batches(y[seen], classes=5, per_class=8, batches=20, g=g):
            optimizer.zero_grad()
            loss = batch_hard(model(x[seen][index]), y[seen][index])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f} recall on new classes {recall_at_one(model, x[~seen], y[~seen]):.3f}")


main()
