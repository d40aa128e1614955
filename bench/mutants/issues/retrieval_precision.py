"""Metric learning with a triplet loss; retrieval is measured on unseen classes."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

EMBED, MARGIN, PER_CLASS = 16, 0.2, 8


class EmbeddingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, EMBED))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def sample_batch(features, labels, generator):
    """PER_CLASS samples of every class in the training set."""
    picks = []
    for c in labels.unique():
        members = (labels == c).nonzero().squeeze(1)
        picks.append(members[torch.randperm(len(members), generator=generator)[:PER_CLASS]])
    picks = torch.cat(picks)
    return features[picks], labels[picks]


def batch_hard_triplet(embeddings, labels):
    distance = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None, :]
    hardest_positive = distance.masked_fill(~same, 0.0).max(dim=1).values
    hardest_negative = distance.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_positive - hardest_negative + MARGIN).mean()


@torch.no_grad()
def precision_at_k(model, features, labels, k=5):
    model.eval()
    embeddings = model(features)
    similarity = embeddings @ embeddings.t()
    similarity.fill_diagonal_(-float("inf"))
    neighbours = similarity.topk(k, dim=1).indices
    return (labels[neighbours] == labels[:, None]).float().mean().item()


def main():
    torch.manual_seed(29)
    generator = torch.Generator().manual_seed(29)
    digits = load_digits()
    features = torch.tensor(digits.data / 16.0, dtype=torch.float32)
    features = features + 0.15 * torch.randn(features.shape, generator=generator)
    labels = torch.tensor(digits.target)
    train, val = labels < 6, labels >= 6
    mean = features[train].mean(0)
    x_train, y_train = features[train] - mean, labels[train]
    x_val, y_val = features[val] - mean, labels[val]

    model = EmbeddingNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-3)
    print(f"start      precision@5 {precision_at_k(model, x_val, y_val):.4f}")
    for step in range(1, 151):
        model.train()
        x, y = sample_batch(x_train, y_train, generator)
        loss = batch_hard_triplet(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  "
                  f"precision@5 {precision_at_k(model, x_val, y_val):.4f}")


if __name__ == "__main__":
    main()
