"""Tell drowsy from alert in brain signals of thirty people; the test people must be new ones."""

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GroupShuffleSplit
from torch import nn


def recordings(seed, people=30, per_person=40, channels=24):
    rng = np.random.default_rng(seed)
    x, y, who = [], [], []
    direction = rng.normal(0, 1, channels)
    for person in range(people):
        offset = rng.normal(0, 2.0, channels)
        # each person is mostly in one of the two states
        drowsy = rng.random(per_person) < (0.85 if person % 2 else 0.15)
        x.append(
            offset + rng.normal(0, 1.0, (per_person, channels)) + np.where(drowsy, 0.35, -0.35)[:, None] * direction
        )
        y.append(drowsy)
        who.append(np.full(per_person, person))
    return np.concatenate(x).astype(np.float32), np.concatenate(y).astype(np.float32), np.concatenate(who)


def build(n_in):
    return nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))


def train(model, x, y, epochs=15):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(64):
            loss = loss_fn(model(x[idx]).squeeze(-1), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % 5 == 4:
            print(f"  epoch {epoch + 1}: loss {total / len(x):.4f}")


def main():
    torch.manual_seed(8)
    x, y, who = recordings(seed=8)
    scores = []
    splitter = GroupShuffleSplit(n_splits=3, test_size=0.25, random_state=8)
    for fold, (tr, te) in enumerate(splitter.split(x, y, groups=who)):
        print(f"fold {fold}: {len(tr)} training rows, {len(te)} test rows")
        mean, std = x[tr].mean(0), x[tr].std(0)
        x_tr, x_te = torch.from_numpy((x[tr] - mean) / std), torch.from_numpy((x[te] - mean) / std)
        model = build(x.shape[1])
        train(model, x_tr, torch.from_numpy(y[tr]))
        model.eval()
        with torch.no_grad():
            guess = torch.sigmoid(model(x_te).squeeze(-1)) > 0.5
        scores.append(balanced_accuracy_score(y[te], guess.numpy()))
        print(f"  balanced accuracy {scores[-1]:.4f}")
    print(f"mean balanced accuracy {np.mean(scores):.4f} +- {np.std(scores):.4f}")


if __name__ == "__main__":
    main()
