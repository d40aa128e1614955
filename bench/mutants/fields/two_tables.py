"""Join measurements and lab results of the same patients, which two hospitals' exports list in different orders."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(17)
rng = np.random.default_rng(17)


def read_exports():
    """Two tables with an id column; each sorted as its own system happened to sort it."""
    data = load_breast_cancer()
    ids = rng.permutation(10_000)[: len(data.target)]
    clinic = np.column_stack([ids, data.data[:, :10]])
    lab = np.column_stack([ids, data.data[:, 14:17], data.target])
    # the lab exports in batches of the day, so rows near each other are mixed
    lab = lab[rng.permutation(len(lab))]
    return clinic, lab


def join(clinic, lab):
    clinic = clinic[np.argsort(clinic[:, 0])]
    lab = lab[np.argsort(lab[:, 0])]
    features = np.hstack([clinic[:, 1:], lab[:, 1:4]])
    return features.astype(np.float32), lab[:, -1].astype(np.int64)


def main():
    features, target = join(*read_exports())
    order = rng.permutation(len(target))
    train, test = order[:400], order[400:]
    mean, std = features[train].mean(axis=0), features[train].std(axis=0)
    features = torch.from_numpy((features - mean) / std)
    target = torch.from_numpy(target)

    net = nn.Sequential(nn.Linear(features.shape[1], 16), nn.ReLU(), nn.Linear(16, 2))
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(15):
        net.train()
        shuffled = torch.from_numpy(rng.permutation(train))
        losses = []
        for chunk in shuffled.split(20):
            loss = loss_fn(net(features[chunk]), target[chunk])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if epoch % 3 == 2:
            net.eval()
            with torch.no_grad():
                out = net(features[test])
            acc = (out.argmax(1) == target[test]).double().mean().item()
            print(
                f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, test loss {loss_fn(out, target[test]).item():.4f}, "
                f"test acc {acc:.4f}"
            )


if __name__ == "__main__":
    main()
