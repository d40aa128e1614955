"""Contrastive pretraining on digits (SimCLR) followed by a linear probe."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from torch import nn


class Encoder(nn.Module):
    """Backbone with a projection head."""

    def __init__(self, width=64, out=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 24), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, out))

    def forward(self, x):
        return self.projector(self.backbone(x))


def augment(x):
    shift = int(torch.randint(-1, 2, (1,)))
    images = torch.roll(x.view(-1, 8, 8), shifts=shift, dims=2).reshape(len(x), 64)
    keep = (torch.rand_like(images) > 0.2).float()
    return images * keep + 0.1 * torch.randn_like(images)


def nt_xent(z1, z2, temperature=0.2):
    n = z1.size(0)
    z = nn.functional.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.T / temperature
    sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return nn.functional.cross_entropy(sim, targets)


def probe(encoder, x_train, y_train, x_test, y_test):
    encoder.eval()
    with torch.no_grad():
        f_train, f_test = encoder.backbone(x_train).numpy(), encoder.backbone(x_test).numpy()
    clf = LogisticRegression(max_iter=2000).fit(f_train, y_train)
    return clf.score(f_test, y_test)


def main():
    torch.manual_seed(5)
    np.random.seed(5)
    data, target = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(data / 16, target, test_size=0.3, random_state=5)
    x_train, x_test = torch.tensor(x_train).float(), torch.tensor(x_test).float()
    encoder = Encoder()
    opt = torch.optim.AdamW(encoder.parameters(), lr=2e-3, weight_decay=1e-4)
    print(f"probe before training {probe(encoder, x_train, y_train, x_test, y_test):.4f}")
    for epoch in range(15):
        encoder.train()
        losses = []
        for idx in torch.randperm(len(x_train)).split(128):
            x = x_train[idx]
            loss = nt_xent(encoder(augment(x)), encoder(augment(x)))
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1} nt-xent {np.mean(losses):.4f}")
    print(f"probe after training {probe(encoder, x_train, y_train, x_test, y_test):.4f}")


if __name__ == "__main__":
    main()
